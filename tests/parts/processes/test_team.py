"""A Learner in one process calls no function of `learnkit.processes`."""
import sys
from learnkit.data.process import Team, alone, join_team, team
from learnkit.processes.shard import ShareBatches
from toys import learner

def entered(f):
    "The functions of learnkit/processes that a call of `f` enters"
    found = set()
    def look(frame, what, arg):
        code = frame.f_code
        if 'learnkit/processes' in code.co_filename.replace('\\', '/'): found.add(code.co_qualname)
    sys.setprofile(look)
    try: f()
    finally: sys.setprofile(None)
    return found

def test_alone_no_function_of_processes_is_entered(tmp_path):
    def work():
        learn = learner(path=tmp_path)
        learn.fit(2)
        learn.validate()
        learn.get_preds()
        learn.save('model')
        learn.load('model')
    assert entered(work)==set()

def test_the_plain_team_alone(monkeypatch):
    learn = learner()
    assert type(team()) is Team and type(learn._team) is Team and not learn._team.default_cbs()
    assert not any(isinstance(cb, ShareBatches) for cb in learn.cbs)
    with alone(): assert type(learn._team) is Team

def test_a_launcher_of_one_process_joins_no_group(monkeypatch):
    monkeypatch.setenv('WORLD_SIZE', '1')
    assert entered(join_team)==set()
    monkeypatch.setenv('WORLD_SIZE', '2')   # the launcher's other variables are missing
    assert 'ProcessGroupTeam.join' in entered(join_team)
