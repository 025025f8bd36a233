"""What tests/crash loads a server with, and the models that its recovered state must fit."""
