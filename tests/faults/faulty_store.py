"An S3 server (moto) with planned faults: one request kills the client, answers 503 or waits; or listings are stale"
import os, signal, threading, time

class FaultyStore:
    "A moto server behind a layer that counts requests and injects faults"
    def __init__(self):
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server
        self.app = DomainDispatcherApplication(create_backend_app)
        self.server = make_server('127.0.0.1', 0, self, threaded=True)
        self.url = f'http://127.0.0.1:{self.server.server_port}'
        self.lock  = threading.Lock()
        self.lists = {}   # the answers to each listing request, with their times
        self.reset()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset(self, fault=None, at=0, pid=None, lag=0.):
        "Plan `fault` ('before', 'after', 'slow', '503') at request number `at`; listings are `lag` seconds old"
        self.fault,self.at,self.pid,self.lag,self.n = fault,at,pid,lag,0

    def __call__(self, env, start):
        is_list = env['REQUEST_METHOD']=='GET' and 'list-type' in env.get('QUERY_STRING', '')
        with self.lock: self.n,n = self.n+1,self.n+1
        now = n==self.at
        if now and self.fault=='before': self.kill()
        if now and self.fault=='slow': time.sleep(1)
        if self.fault=='503' and self.at<=n<self.at+12:   # the client retries up to five times
            start('503 Slow Down', [('Content-Type', 'application/xml')])
            return [b'<Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>']
        answer = self.call_app(env)
        if is_list and self.lag: answer = self.older(env['PATH_INFO']+env['QUERY_STRING'], answer)
        if now and self.fault=='after': self.kill()
        start(*answer[:2])
        return answer[2]

    def kill(self): os.kill(self.pid, signal.SIGKILL)

    def call_app(self, env):
        started = []
        with self.lock: body = b''.join(self.app(env, lambda *args: started.append(args[:2])))
        return *started[0],[body]

    def older(self, key, answer):
        "The answer to this listing `lag` seconds ago"
        answers = self.lists.setdefault(key, [])
        answers.append((time.monotonic(), answer))
        before = [a for when,a in answers if when<=time.monotonic()-self.lag]
        return before[-1] if before else answers[0][1]

    def close(self): self.server.shutdown()
