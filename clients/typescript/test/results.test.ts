import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue } from '../src/index.js'
import { bulk, fakeServer } from './fake.js'

const UNBLOCKED = '-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n'
const PENDING = `*2\r\n${bulk('state')}${bulk('pending')}`
const ENDED = '*6\r\n' + ['id', 'c', 'state', 'completed', 'result', '5'].map(bulk).join('')

test('a result is found that is awaited before it is known that an earlier read has ended',
  async () => {
    const leaving = new AbortController()
    const results: Promise<unknown>[] = []
    const readers: Socket[] = []
    const wakers: Socket[] = []
    const wait = (id: string, signal?: AbortSignal): void => {
      const result = queue.result(id, signal && { signal })
      result.catch(() => undefined)
      results.push(result)
    }
    const server = await fakeServer((words, socket) => {
      const [command, , id] = words
      if (command === 'Q.CONFIG') return `*2\r\n${bulk('events')}${bulk('1000')}`
      if (command === 'Q.GET') return id === 'c' ? ENDED : PENDING
      if (words.includes('BLOCK')) {
        readers.push(socket)
        if (readers.length === 1) wait('b', leaving.signal)
        if (readers.length === 2) {
          wait('c')
          wakers[0]?.write(':1\r\n')
        }
        return null
      }
      if (command !== 'CLIENT') return '*0\r\n'
      if (id === '0') return ':0\r\n'
      wakers.push(socket)
      readers.at(-1)?.write(UNBLOCKED)
      if (wakers.length > 1) return ':1\r\n'
      leaving.abort()  // So no command is between this read and the next one.
      return null
    })
    const queue = new Queue('q', { url: server.url })
    try {
      wait('a')
      while (results.length < 3) await sleep(1)
      assert.equal(await results[2], 5)
      assert.equal(wakers.length, 2)
    } finally {
      queue.close()
      server.close()
    }
  })
