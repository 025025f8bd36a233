// The results of many jobs over few connections, and no lost wake-up.
import assert from 'node:assert/strict'
import { connect, createServer, type AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Forgotten, NotCompleted, ResultTimeout, Unreachable, type Queue } from '../../src/index.js'
import { newQueue, pause, plain, play, until, url, withWorker } from './check.js'

const redis = plain()

async function clients(): Promise<string[]> {
  return String(await redis.client('LIST')).split('\n')
    .flatMap((line) => /name=(sluice-\S+)/.exec(line)?.[1] ?? [])
}

/** Ends the next job as a worker would; its id. */
async function endNext(queue: Queue, result: string): Promise<string> {
  const [[, , , id, , lease]] =
    await redis.call('Q.POP', 1, queue.name) as [[string, string, string, string, string, number]]
  await redis.call('Q.ACK', queue.name, id, lease, 'RESULT', result)
  return id
}

/** Bytes that are in use. */
function heap(): number {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  return process.memoryUsage().heapUsed
}

/** Passes on what is sent to the server; each new connection waits so many milliseconds. */
async function slowRelay(ms: number): Promise<{ url: string, close(): void }> {
  const relay = createServer(async (client) => {
    client.on('error', () => undefined).pause()
    await pause(ms)
    const server = connect(Number(process.env['SLUICE_PORT']), '127.0.0.1')
    server.on('error', () => undefined).on('close', () => client.destroy()).pipe(client)
    client.on('close', () => server.destroy()).pipe(server)
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  const { port } = relay.address() as AddressInfo
  return { url: `redis://127.0.0.1:${port}`, close: () => relay.close() }
}

await play({
  'a thousand results at once': async () => {
    const queue = newQueue<number, number>()
    await redis.call('Q.CONFIG', queue.name, 'SET', 'retain_completed', '5000')
    const jobs = (await queue.addMany(Array.from({ length: 1000 }, (_, payload) => ({ payload }))))
      .map((each) => {
        assert.ok(each.status === 'fulfilled')
        return each.value
      })
    const results = Promise.all(jobs.map((job) => job.result({ timeout: 60_000 })))
    await pause(200)
    const mine = await clients()
    assert.ok(mine.length <= 3, `${mine}`)
    await withWorker<number, number>(queue.name, ({ payload }) => payload * 2,
      { concurrency: 50 }, async () => {
        assert.deepEqual(await results, jobs.map((_, n) => n * 2))
      })
  },

  'every end': async () => {
    const queue = newQueue<number, unknown>()
    const jobs = [await queue.add(1), await queue.add(2, { delay: 60_000 }), await queue.add(3)]
    const [done, cancelled, forgotten] = jobs.map((job) => job.result())
    await endNext(queue, '{"ok":true}')
    assert.deepEqual(await done, { ok: true })
    assert.deepEqual(await jobs[0]?.result(), { ok: true })
    await jobs[1]?.cancel({ reason: 'why' })
    await assert.rejects(cancelled ?? Promise.resolve(), (error) =>
      error instanceof NotCompleted && error.state === 'cancelled' && error.error === 'why')
    await redis.del(queue.name)
    await assert.rejects(forgotten ?? Promise.resolve(), Forgotten)
    await assert.rejects(queue.result('unknown'), Forgotten)
  },

  'the end of a successor': async () => {
    for (const events of ['1000', '0']) {
      const queue = newQueue<number, number>()
      await redis.call('Q.CONFIG', queue.name, 'SET', 'events', events)
      const first = await queue.add(1)
      const [[, , lease]] =
        await redis.call('Q.POP', 1, queue.name, 'BRIEF') as [[string, string, number]]
      const second = await queue.add(2, { id: first.id, ifdup: 'update' })
      assert.equal(second.outcome, 'queued')
      const results = Promise.all([first.result(), second.result()])
      await pause(100)
      await redis.call('Q.ACK', queue.name, first.id, lease, 'RESULT', '1')
      await endNext(queue, '2')
      assert.deepEqual(await results, [2, 2])
    }
  },

  'time, signal and close end a wait': async () => {
    const queue = newQueue<number, unknown>()
    const job = await queue.add(1)
    const controller = new AbortController()
    const waits = [job.result({ signal: controller.signal }), job.result()]
    waits.forEach((wait) => wait.catch(() => undefined))
    await assert.rejects(job.result({ timeout: 50 }), ResultTimeout)
    controller.abort(new Error('enough'))
    await assert.rejects(waits[0] ?? Promise.resolve(), /enough/)
    queue.close()
    await assert.rejects(waits[1] ?? Promise.resolve(), Unreachable)
  },

  'a time of 0 is for an end that is there': async () => {
    const queue = newQueue<number, number>()
    const [done, cancelled] = [await queue.add(1), await queue.add(2)]
    await assert.rejects(done.result({ timeout: 0 }), ResultTimeout)
    await endNext(queue, '5')
    await cancelled.cancel({ reason: 'why' })
    assert.equal(await done.result({ timeout: 0 }), 5)
    await assert.rejects(cancelled.result({ timeout: 0 }), NotCompleted)
    await assert.rejects(queue.result('unknown', { timeout: 0 }), Forgotten)
    await assert.rejects(done.result({ timeout: 0, signal: AbortSignal.abort() }), /aborted/)
  },

  'no lost wake-up': async () => {
    const queue = newQueue<number, number>()
    await withWorker<number, number>(queue.name, async ({ payload }) => {
      if (payload % 3 === 0) await pause(payload % 7)
      return payload
    }, { concurrency: 10 }, async () => {
      let slowest = 0
      const lane = async (first: number): Promise<void> => {
        for (let n = first; n < first + 40; ++n) {
          const job = await queue.add(n)
          if (n % 2 === 0) await pause(n % 5)
          const began = performance.now()
          assert.equal(await job.result({ timeout: 60_000 }), n)
          slowest = Math.max(slowest, performance.now() - began)
        }
      }
      await Promise.all(Array.from({ length: 10 }, (_, n) => lane(n * 1000)))
      // A wait that was only ended by its time-out takes 5 s.
      assert.ok(slowest < 4000, `${slowest}`)
    })
  },

  'without events': async () => {
    const queue = newQueue<number, number>()
    await redis.call('Q.CONFIG', queue.name, 'SET', 'events', '0')
    const before = (await clients()).length
    const jobs = await Promise.all(Array.from({ length: 12 }, (_, n) => queue.add(n)))
    const results = Promise.all(jobs.map((job) => job.result({ timeout: 60_000 })))
    await until('they wait', async () => (await clients()).length >= before + 8)
    assert.equal((await clients()).length, before + 8)
    for (const _ of jobs) await endNext(queue, '5')
    assert.deepEqual(await results, jobs.map(() => 5))
  },

  'without events, beside results that are awaited longer': async () => {
    const queue = newQueue<number, number>()
    await redis.call('Q.CONFIG', queue.name, 'SET', 'events', '0')
    const long: Promise<unknown>[] = []
    for (const count of [1, 7, 8]) {
      while (long.length < count) {
        long.push((await queue.add(1, { delay: 60_000 })).result().catch(() => undefined))
      }
      await pause(500)
      const took: number[] = []
      while (took.length < 2) {
        const job = await queue.add(2)
        const result = job.result({ timeout: 60_000 })
        assert.equal(await endNext(queue, '5'), job.id)
        const ended = performance.now()
        assert.equal(await result, 5)
        took.push(performance.now() - ended)
      }
      // The turn of another one takes a second. One that began before must not take five.
      assert.ok(Math.max(...took) < 3000, `beside ${count}: ${took}`)
    }
    queue.close()
    await Promise.all(long)
  },

  'waits without events leave nothing behind': async () => {
    const queue = newQueue<number, number>()
    await redis.call('Q.CONFIG', queue.name, 'SET', 'events', '0')
    const before = heap()
    for (let n = 0; n < 8000; n += 80) {
      await Promise.all(Array.from({ length: 80 }, (_, at) =>
        assert.rejects(queue.result(`${n + at}`.padEnd(500, '-')), Forgotten)))
    }
    const kept = heap() - before
    assert.ok(kept < 2_000_000, `${kept}`)
  },

  'events that are switched off meanwhile': async () => {
    const queue = newQueue<number, number>()
    const wait = (await queue.add(1)).result({ timeout: 60_000 })
    await pause(300)
    await redis.call('Q.CONFIG', queue.name, 'SET', 'events', '0')
    await endNext(queue, '5')
    assert.equal(await wait, 5)
  },

  'users who may not read events, or not know their connection': async () => {
    for (const rights of [[], ['+q.events', '+q.config', '+client|unblock']]) {
      await redis.call('ACL', 'SETUSER', 'producer', 'reset', 'on', '>secret', '~*', '+q.add',
        '+q.get', '+client|setname', '+client|setinfo', ...rights)
      const queue = newQueue<number, number>({ url: url.replace('//', '//producer:secret@') })
      const long = (await queue.add(1, { delay: 60_000 })).result().catch(() => undefined)
      await pause(300)
      const wait = (await queue.add(1)).result({ timeout: 60_000 })
      await endNext(queue, '5')
      const ended = performance.now()
      assert.equal(await wait, 5)
      const took = performance.now() - ended
      assert.ok(took < 3000, `${rights}: ${took}`)
      queue.close()
      await long
    }
  },

  'no lost wake-up while a connection is opened': async () => {
    const relay = await slowRelay(300)
    const queue = newQueue<number, number>({ url: relay.url })
    const first = (await queue.add(0)).result()
    await endNext(queue, '5')
    assert.equal(await first, 5)
    const [long, short] = [await queue.add(1, { delay: 60_000 }), await queue.add(2)]
    await pause(10_500)  // The connections of those that wait for nothing are closed after 10 s.
    const waits = long.result().catch(() => undefined)
    await pause(100)
    const wait = short.result()
    await endNext(queue, '5')
    const ended = performance.now()
    assert.equal(await wait, 5)
    const took = performance.now() - ended
    assert.ok(took < 3000, `${took}`)
    queue.close()
    await waits
    relay.close()
  },
})
