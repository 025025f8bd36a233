// Programs that misbehave, and servers that do.
import assert from 'node:assert/strict'
import {
  Adopted, CodecError, CommandError, LeaseLost, NoPermission, Queue, ShuttingDown, SluiceError,
  Unreachable, Worker, WrongType, type Logger,
} from '../../src/index.js'
import { newQueue, pause, plain, play, until, url, withWorker } from './check.js'

const redis = plain()
const ignore = (): void => undefined
const unheard: unknown[] = []
process.on('unhandledRejection', (error) => unheard.push(error))
process.on('warning', (warning) => unheard.push(warning))

type Kind = new (...words: never[]) => SluiceError

function errorsTo(errors: string[]): Logger {
  return { debug: ignore, info: ignore, warn: ignore, error: (text) => errors.push(text) }
}

await play({
  'a hook that is an async function and fails': async () => {
    const queue = newQueue<number, number>()
    const errors: string[] = []
    await withWorker<number, number>(queue.name, ({ payload }) => payload, {
      logger: errorsTo(errors),
      onCompleted: async () => { throw new Error('of a hook') },
    }, async () => {
      assert.equal(await (await queue.add(1)).result(), 1)
      await until('it is logged', () => errors.length === 1)
      assert.match(String(errors), /hook onCompleted threw: of a hook/)
    })
  },

  'ready is settled if the worker cannot begin': async () => {
    const worker = new Worker('none', ignore, {
      url: 'redis://127.0.0.1:1', connectTimeout: 100, signals: false, logger: null })
    const running = assert.rejects(worker.run(), Unreachable)
    await assert.rejects(worker.ready, Unreachable)
    await running
  },

  'a worker that is stopped before it is connected is never ready': async () => {
    const worker = new Worker('none', ignore, { url, signals: false, logger: null })
    const running = worker.run()
    await worker.stop()
    await running
    await assert.rejects(worker.ready, Unreachable)
  },

  'times that are longer than a timer': async () => {
    const queue = newQueue<number, number>({ patience: Infinity })
    const job = await queue.add(1)
    const results = [2 ** 40, Infinity].map((timeout) => job.result({ timeout }))
    let ended = false
    const worker = new Worker<number, number>(queue.name, async ({ payload }) => {
      await pause(300)
      ended = true
      return payload
    }, { url, signals: false, logger: null })
    const running = worker.run()
    await until('it runs', () => worker.active === 1)
    await worker.stop({ grace: Infinity })
    await running
    assert.ok(ended)
    assert.deepEqual(await Promise.all(results), [1, 1])
  },

  'a result that cannot be decoded': async () => {
    const queue = newQueue<number, number>()
    await withWorker<Buffer, string>(queue.name, () => '{', { codec: 'raw' }, async () => {
      const job = await queue.add(1)
      await assert.rejects(job.result(), CodecError)
      await assert.rejects(job.get({ with: ['result'] }), CodecError)
    })
  },

  'many that wait for a server': async () => {
    const queue = newQueue<number, number>({ url: 'redis://127.0.0.1:1', patience: 500 })
    const adds = await Promise.allSettled(Array.from({ length: 50 }, (_, n) => queue.add(n)))
    for (const add of adds) {
      assert.ok(add.status === 'rejected' && add.reason instanceof Unreachable)
    }
    queue.close()
  },

  'a closed queue says so by an error of this package': async () => {
    const queue = newQueue<number, number>()
    queue.close()
    queue.close()
    await assert.rejects(queue.add(1), SluiceError)
    await assert.rejects(queue.result('x'), SluiceError)
    assert.throws(() => queue.events(), SluiceError)
  },

  'one signal for many waits, and many workers in one process': async () => {
    const queue = newQueue<number, number>()
    const { signal } = new AbortController()
    const ending = new AbortController()
    const jobs = await Promise.all(Array.from({ length: 20 }, (_, n) => queue.add(n)))
    const results = Promise.all(jobs.map((job) => job.result({ signal })))
    const events = Promise.all(jobs.map(() => queue.events({ signal: ending.signal }).next()))
    const workers = jobs.map(() => new Worker<number, number>(
      queue.name, ({ payload }) => payload, { url, logger: null }))
    const running = workers.map((worker) => worker.run())
    assert.deepEqual(await results, jobs.map((_, n) => n))
    assert.equal(process.listenerCount('SIGTERM'), 1)
    process.kill(process.pid, 'SIGTERM')
    await Promise.all(running)
    assert.equal(process.listenerCount('SIGTERM'), 0)
    ending.abort()
    await events
  },

  'a worker that stops waits for a handler whose lease is lost': async () => {
    const queue = newQueue<number, number>()
    let ended = false
    let lost: unknown = null
    const worker = new Worker<number, void>(queue.name, async (_job, { signal }) => {
      signal.addEventListener('abort', () => (lost = signal.reason))
      await until('it is lost', () => lost)
      await pause(500)  // It does not heed it at once.
      ended = true
    }, { url, signals: false, logger: null })
    const running = worker.run()
    const job = await queue.add(1)
    await until('it runs', () => worker.active === 1)
    await job.cancel({ grace: 0 })
    await until('it is lost', () => lost instanceof LeaseLost)
    await worker.stop({ grace: 10_000 })
    await running
    assert.ok(ended)
  },

  'rights that are taken away under the worker': async () => {
    for (const right of ['q.ack', 'q.pop', 'q.touch']) {
      const queue = newQueue<number, number>()
      await redis.call('ACL', 'SETUSER', 'worker', 'reset', 'on', '>secret', '~*', '+@all')
      const worker = new Worker<number, void>(queue.name, () => pause(300), {
        url: url.replace('//', '//worker:secret@'), signals: false, logger: null, concurrency: 2,
        heartbeat: 100,
      })
      const running = worker.run()
      await worker.ready
      await queue.add(1)
      await until('it runs', () => worker.active === 1)
      await redis.call('ACL', 'SETUSER', 'worker', `-${right}`)
      await queue.add(2)
      const began = performance.now()
      await assert.rejects(running, NoPermission)
      assert.ok(performance.now() - began < 8000, right)
      assert.equal((await queue.stats()).active, 0, right)
    }
  },

  'a worker that may not send heartbeats gives its jobs back at once': async () => {
    const queue = newQueue<number, number>()
    await redis.call('ACL', 'SETUSER', 'worker', 'reset', 'on', '>secret', '~*', '+@all')
    let heard: unknown = null
    const worker = new Worker<number, void>(queue.name, async (_job, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      heard = signal.reason
    }, { url: url.replace('//', '//worker:secret@'), signals: false, logger: null, heartbeat: 100 })
    const running = worker.run()
    const job = await queue.add(1)
    await until('it runs', () => worker.active === 1)
    await redis.call('ACL', 'SETUSER', 'worker', '-q.touch')
    const began = performance.now()
    await assert.rejects(running, NoPermission)
    assert.ok(performance.now() - began < 8000)
    assert.ok(heard instanceof ShuttingDown, String(heard))
    const info = await job.get()
    assert.deepEqual([info?.state, info?.attempts], ['pending', 0])
  },

  'what refuses a queue is an error of the table': async () => {
    const other = process.env['REDIS_PORT']
    await redis.call('ACL', 'SETUSER', 'nobody', 'reset', 'on', '>secret', '~*', '+client')
    await redis.call('SET', 'text', 'x')
    await redis.call('Q.ADOPT', 'adopted', 'PENDING', 'waiting', 'ACTIVE', 'running')
    const refuses = async (kind: Kind, name: string, options: object, only = ''): Promise<void> => {
      const queue = new Queue<number, number>(name, { url, patience: 200, ...options })
      const calls = {
        add: () => queue.add(1),
        retry: () => queue.retry('x'),
        get: () => queue.get('x'),
        stats: () => queue.stats(),
        cancel: () => queue.cancel('x'),
        result: () => queue.result('x', { timeout: 20_000 }),
      }
      for (const [method, call] of Object.entries(calls)) {
        if (only !== '' && !only.includes(method)) continue
        await assert.rejects(call, kind, `${method} of ${name}`)
      }
      queue.close()
    }
    await refuses(Unreachable, 'exec', { url: 'redis://127.0.0.1:1' }, 'add retry get stats cancel')
    await refuses(NoPermission, 'exec', { url: url.replace('//', '//nobody:secret@') })
    await refuses(WrongType, 'text', {})
    await refuses(Adopted, 'adopted', {}, 'add retry')
    if (other === undefined) return console.log('  there is no redis-server')
    await refuses(CommandError, 'exec', { url: `redis://127.0.0.1:${other}` })
  },

  'a script that keeps the server busy': async () => {
    const queue = newQueue<number, number>()
    await redis.config('SET', 'busy-reply-threshold', '50')
    const other = plain()
    await withWorker<number, number>(queue.name, async ({ payload }) => {
      await pause(1500)
      return payload
    }, {}, async (worker) => {
      const job = await queue.add(1)
      await until('it runs', () => worker.active === 1)
      const script = assert.rejects(other.eval('while true do end', 0))
      const isBusy = (error: unknown): boolean => /^ReplyError: BUSY/.test(String(error))
      await until('it is busy', () => redis.get('x').then(() => false, isBusy))
      const added = queue.add(2)
      await pause(1500)  // A heartbeat and the acknowledgement are refused meanwhile.
      await redis.script('KILL')
      await script
      assert.equal(await job.result(), 1)
      assert.equal(await (await added).result(), 2)
    })
    other.disconnect()
  },

  'nothing was unheard': async () => {
    await pause(10)
    assert.deepEqual(unheard, [])
  },
})
