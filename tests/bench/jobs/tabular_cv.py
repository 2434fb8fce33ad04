# ruff: noqa: F821  the training of a job, in the place of what the notebook has under "Training": all other names are its own
# skorch
ours = cross_val_score(skorch.NeuralNetClassifier(
    net, criterion=nn.CrossEntropyLoss, optimizer=torch.optim.AdamW, optimizer__weight_decay=.1, batch_size=64, max_epochs=12,
    train_split=None, verbose=0, callbacks=[skorch.callbacks.LRScheduler(
        torch.optim.lr_scheduler.OneCycleLR, max_lr=1e-2, total_steps=96, step_every='batch')]), x, y, cv=folds)
