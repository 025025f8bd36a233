// Finds the programs of Sluice: program('sluice-server') is the path of one that can be started.
'use strict'

const path = require('node:path')

const programs = ['sluice-server', 'sluice', 'sluice-journal', 'sluice-import']

function program(name) {
  if (!programs.includes(name)) {
    throw new Error(`no program ${name}: there are ${programs.join(', ')}`)
  }
  return path.join(__dirname, 'bin', name)
}

module.exports = { program, programs }
