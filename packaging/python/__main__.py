from sluice_server import start

start("sluice-server")
