import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, ResultTimeout } from '../src/index.js'
import { bulk, fakeServer, silentServer } from './fake.js'

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

test('an end of which nobody has heard yet is found before the time is over', async () => {
  // Where the events end is not said, so nobody follows them.
  const server = await fakeServer(([command, , id]) => {
    if (command === 'Q.GET') return id === 'c' ? ENDED : PENDING
    if (command === 'Q.CONFIG') return `*2\r\n${bulk('events')}${bulk('1000')}`
    return command === 'CLIENT' ? ':0\r\n' : null
  })
  const queue = new Queue('q', { url: server.url })
  try {
    // The second that a look has is not for the connection.
    assert.equal((await queue.get('c'))?.state, 'completed')
    assert.equal(await queue.result('c', { timeout: 50 }), 5)
    await assert.rejects(queue.result('a', { timeout: 50 }), ResultTimeout)
    assert.equal(await queue.result('c', { timeout: 0 }), 5)
    await assert.rejects(queue.result('a', { timeout: 0 }), ResultTimeout)
  } finally {
    queue.close()
    server.close()
  }
})

test('the last look at a job waits a second for a server that says nothing', async () => {
  const server = await silentServer()
  const queue = new Queue('q', { url: server.url })
  const began = performance.now()
  try {
    await assert.rejects(queue.result('a', { timeout: 0 }), ResultTimeout)
    assert.ok(performance.now() - began >= 990, `${performance.now() - began}`)
  } finally {
    queue.close()
    server.close()
  }
  await assert.rejects(
    new Queue('q', { url: server.url }).result('a', { timeout: 0 }), ResultTimeout)
})
