import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { afterEach, test } from 'node:test'
import { Queue, Unknown, Unreachable, Worker } from '../src/index.js'
import { Closed, Interrupted, Link } from '../src/link.js'
import { sleep } from '../src/time.js'
import { bulk, fakeServer, silentServer, type Answer, type FakeServer } from './fake.js'

const MISCONF = '-MISCONF Errors writing to the journal: the server stops. The last commands ' +
  'may or may not have been kept.\r\n'
const ADDED = `*4\r\n${bulk('id')}${bulk('x')}${bulk('state')}${bulk('pending')}`

let ending: (() => void)[] = []
afterEach(() => {
  for (const end of ending) end()
  ending = []
})

async function serve(answer: Answer, begin?: Answer): Promise<FakeServer> {
  const server = await fakeServer(answer, begin)
  ending.push(() => server.close())
  return server
}

function linkTo({ url }: FakeServer): Link {
  const link = new Link({ url }, 'test')
  ending.push(() => link.close())
  return link
}

function queueOf({ url }: FakeServer): Queue {
  const queue = new Queue('q', { url, patience: 20_000 })
  ending.push(() => queue.close())
  return queue
}

/** Loses the connection in place of the reply to the first of these commands. */
function losing(name: string, reply: string): Answer {
  let lost = false
  return ([command], socket: Socket) => {
    if (command !== name || lost) return reply
    lost = true
    socket.destroy()
    return null
  }
}

test('a cancel and a retry are not repeated once they were sent', async () => {
  const server = await serve(losing('Q.CANCEL', bulk('gone')))
  await assert.rejects(queueOf(server).cancel('x'), Unknown)
  const other = await serve(losing('Q.RETRY', bulk('pending')))
  await assert.rejects(queueOf(other).retry('x'), Unknown)
  assert.deepEqual([server.asked.length, other.asked.length], [1, 1])
})

test('what was not done is repeated', async () => {
  let tries = 0
  const server = await serve(() => (++tries === 1 ? '-LOADING it\r\n' : bulk('cancelled')))
  assert.equal(await queueOf(server).cancel('x'), 'cancelled')
  const reading = await serve(losing('Q.GET', '$-1\r\n'))
  assert.equal(await queueOf(reading).get('x'), null)
  assert.equal(reading.asked.length, 2)
})

test('a server that has too many clients is waited for', async () => {
  let full = 2
  const server = await serve(() =>
    (full-- > 0 ? '-ERR max number of clients reached\r\n' : '+OK\r\n'))
  const link = linkTo({ ...server, url: server.url.replace('//', '//user:word@') })
  assert.equal(String(await link.call(['GET', 'x'], 20_000, 20_000)), 'OK')
  link.drop('of a test')
  full = Infinity
  await assert.rejects(link.call(['GET', 'x'], 200, 200), (error) =>
    error instanceof Unreachable && !(error instanceof Interrupted))
})

test('what was not sent since the connection was lost while it was opened is certain', async () => {
  const server = await serve(() => null, ([, what], socket) => {
    if (what === 'ID') socket.end()
    return what === 'ID' ? null : '+OK\r\n'
  })
  const queue = new Queue('q', { url: server.url, patience: 200 })
  ending.push(() => queue.close())
  await assert.rejects(queue.add(1), Unreachable)
  await assert.rejects(queue.cancel('x'), Unreachable)
})

test('what a failed journal may have kept is not known', async () => {
  const server = await serve(() => MISCONF)
  await assert.rejects(linkTo(server).call(['Q.ADD', 'q', 'x', '1'], 9000, 9000), Interrupted)
  await assert.rejects(queueOf(server).cancel('x'), Unknown)
  await assert.rejects(queueOf(server).add(1, { id: 'x', ifdup: 'replace' }), Unknown)
})

test('a job whose add was under way at the close of the queue is unknown', async () => {
  const queue: Queue[] = []
  const server = await serve(() => {
    queue[0]?.close()
    return null
  })
  queue.push(queueOf(server))
  await assert.rejects(queue[0]?.add(1, { id: 'x' }) ?? Promise.resolve(), Unknown)
})

test('a reply that takes long is waited for as long as some of it comes', async () => {
  let parts = 0
  const server = await serve((_words, socket) => {
    const timer = setInterval(() => {
      socket.write(++parts < 8 ? 'x' : '\r\n')
      if (parts === 8) clearInterval(timer)
    }, 300)
    return '$7\r\n'
  })
  assert.equal(String(await linkTo(server).call(['GET', 'x'], 20_000, 1500)), 'xxxxxxx')
})

test('a reply that does not come costs the connection', async () => {
  const server = await serve(() => null)
  await assert.rejects(linkTo(server).call(['GET', 'x'], 20_000, 50), Interrupted)
})

test('a reply that came while the process did not run is there', async () => {
  const server = await serve(() => ':5\r\n')
  const link = linkTo(server)
  await link.call(['GET', 'x'], 20_000, 20_000)
  for (let n = 0; n < 10; ++n) {
    const got = link.call(['GET', 'x'], 20_000, 100)
    await sleep(0)  // It is sent.
    const until = performance.now() + 150
    while (performance.now() < until);
    assert.equal(await got, 5)
  }
})

test('close ends an attempt to connect', async () => {
  const began = performance.now()
  const { url, sockets, close } = await silentServer()
  ending.push(close)
  const link = new Link({ url }, 'test')
  const opening = assert.rejects(link.open(60_000), Closed)
  while (sockets.length === 0) await sleep(5)
  link.close()
  await opening
  while (!sockets[0]?.destroyed) await sleep(5)

  const worker = new Worker('q', () => null, { url, signals: false, logger: null })
  const running = worker.run()
  await sleep(50)
  await worker.stop()
  await running

  const queue = new Queue('q', { url })
  const aborting = new AbortController()
  const loop = queue.events({ signal: aborting.signal }).next()
  await sleep(50)
  aborting.abort()
  assert.deepEqual(await loop, { done: true, value: undefined })
  queue.close()
  assert.ok(performance.now() - began < 9000)  // An attempt takes 10 s.
})

test('an add whose reply is lost is repeated', async () => {
  const server = await serve(losing('Q.ADD', ADDED))
  assert.equal((await queueOf(server).add(1)).state, 'pending')
  assert.equal(server.asked.length, 2)
})

test('addMany has at most 1,000 adds under way', async () => {
  let first = 0
  const server: FakeServer = await serve((_words, socket) => {
    if (first > 0) return ADDED
    if (server.asked.length === 1000) {
      setTimeout(() => {  // What is sent too early comes meanwhile.
        first = server.asked.length
        socket.write(ADDED.repeat(first))
      }, 200)
    }
    return null
  })
  const jobs = Array.from({ length: 1500 }, (_, payload) => ({ payload }))
  const outcomes = await queueOf(server).addMany(jobs)
  assert.deepEqual([first, server.asked.length, outcomes.length], [1000, 1500, 1500])
})

test('addMany waits for a server that is away once, and not for each pipeline', async () => {
  const queue = new Queue('q', { url: 'redis://127.0.0.1:1', patience: 5000 })
  ending.push(() => queue.close())
  const began = performance.now()
  const outcomes = await queue.addMany(Array.from({ length: 5000 }, (_, payload) => ({ payload })))
  const tookMs = performance.now() - began
  assert.ok(tookMs < 20_000, `${tookMs} ms`)  // Five times the patience are 25 s.
  const reasons = new Set(outcomes.map((outcome) =>
    outcome.status === 'rejected' && outcome.reason instanceof Unreachable))
  assert.deepEqual([outcomes.length, ...reasons], [5000, true])
})
