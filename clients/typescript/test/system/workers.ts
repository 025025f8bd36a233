// Worker: how runs end, what handlers hear, and what is sent for it.
import assert from 'node:assert/strict'
import {
  Adopted, Cancelled, CommandError, Fatal, LeaseLost, NoPermission, NotAuthenticated, NotCompleted,
  Retry, ShuttingDown, SluiceError, Unreachable, Worker, WrongType, type Handler,
  type WorkerOptions,
} from '../../src/index.js'
import { newQueue, pause, plain, play, until, url, withWorker } from './check.js'

const redis = plain()

/** Resolves when the signal is aborted: the reason. */
function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(signal.reason))
  })
}

async function refusal(options: WorkerOptions, queue = 'refused'): Promise<unknown> {
  const worker = new Worker(
    queue, () => undefined, { url, logger: null, signals: false, ...options })
  return await worker.run().then(() => null, (error: unknown) => error)
}

await play({
  'how runs end': async () => {
    const queue = newQueue<string, unknown>()
    const attempts: number[] = []
    const completed: string[] = []
    const handler: Handler<string, unknown> = (job) => {
      if (job.payload === 'fatal') throw new Fatal('never')
      if (job.payload === 'plain') throw new TypeError('broken')
      if (job.payload === 'no text') throw Object.create(null)
      if (job.payload === 'no delay') throw new Retry('later', { delay: -1 })
      if (job.payload === 'nan') return { value: NaN }
      if (job.payload === 'big') return 'x'.repeat(2_000_000)
      if (job.payload === 'retry') {
        attempts.push(job.attempt)
        if (job.attempt < 3) throw new Retry('later', { delay: 10 })
      }
      return job.payload === 'nothing' ? undefined : { said: job.payload }
    }
    const onCompleted = (job: { payload: string }): void => void completed.push(job.payload)
    await withWorker(queue.name, handler, { concurrency: 3, onCompleted }, async () => {
      const end = async (payload: string, retry = 0): Promise<unknown> =>
        (await queue.add(payload, { retry })).result().catch((error: unknown) => {
          assert.ok(error instanceof NotCompleted)
          return `${error.state} ${error.error}`
        })
      assert.deepEqual(await end('hello'), { said: 'hello' })
      assert.equal(await end('nothing'), undefined)
      assert.equal(await end('fatal', 5), 'failed never')
      assert.equal(await end('plain'), 'failed TypeError: broken')
      assert.equal(await end('no text'), 'failed what was thrown has no text')
      assert.match(String(await end('no delay')), /^failed RangeError: /)
      assert.deepEqual(await end('retry', 5), { said: 'retry' })
      assert.deepEqual(attempts, [1, 2, 3])
      assert.match(String(await end('nan', 5)), /^failed result: /)
      assert.match(String(await end('big', 5)), /^failed result: TOOBIG limit=/)
    })
    assert.deepEqual(completed, ['hello', 'nothing', 'retry'])
    await redis.call('Q.ADD', queue.name, 'broken', '{', 'RETRY', 5)
    await withWorker(queue.name, handler, {}, async () => {
      await assert.rejects(queue.result('broken'), (error) =>
        error instanceof NotCompleted && error.error.startsWith('payload: '))
    })
  },

  'a heartbeat keeps a lease, and carries progress and log': async () => {
    const queue = newQueue<number, unknown>()
    const handler: Handler<number, unknown> = async (job, { progress }) => {
      for (let n = 0; n < 25; ++n) {
        progress({ step: n })
        await pause(100)
      }
      return job.attempt
    }
    await withWorker(queue.name, handler, { lease: 1500, concurrency: 2 }, async () => {
      const jobs = [await queue.add(1), await queue.add(2)]
      await until('progress', async () => (await jobs[0]?.get())?.progress !== null)
      for (const job of jobs) assert.equal(await job.result(), 1)
      assert.deepEqual((await jobs[0]?.get())?.progress, { step: 24 })
      assert.equal((await queue.stats())['reclaimed'], 0)
    })
  },

  'progress is a value to who asks for it, and to the next run': async () => {
    const queue = newQueue<unknown, unknown>()
    const values = [7, 'half', { step: 1 }, [null]]
    await withWorker(queue.name, ({ attempt, payload, progress: last }, { progress }) => {
      if (attempt > 1) return { last }
      progress(payload)
      throw new Retry('again', { delay: 0 })
    }, { with: ['progress'] }, async () => {
      for (const value of values) {
        const job = await queue.add(value, { retry: 1 })
        assert.deepEqual(await job.result(), { last: value })
        assert.deepEqual((await job.get())?.progress, value)
      }
    })
    const job = await queue.add(1)
    assert.equal((await job.get())?.progress, null)
    const [[, , lease]] =
      await redis.call('Q.POP', 1, queue.name, 'BRIEF') as [[string, string, number]]
    // Another program may set what is no JSON.
    await redis.call('Q.TOUCH', queue.name, job.id, lease, 'PROGRESS', 'half of it')
    assert.deepEqual((await job.get())?.progress, Buffer.from('half of it'))
  },

  'progress that cannot be encoded fails the run': async () => {
    const queue = newQueue<number, unknown>()
    await withWorker(queue.name, (_job, { progress }) => progress(NaN), {}, async () => {
      await assert.rejects((await queue.add(1, { retry: 0 })).result(), (error) =>
        error instanceof NotCompleted && error.error.includes('NaN'))
    })
  },

  'a cancel is heard, and a result still counts': async () => {
    const queue = newQueue<string, unknown>()
    const heard = [Infinity]
    let cancelled = 0
    const handler: Handler<string, unknown> = async (job, { signal }) => {
      const reason = await aborted(signal)
      heard.push(performance.now() - cancelled)
      assert.ok(reason instanceof Cancelled && reason.message === 'enough', String(reason))
      if (job.payload === 'give up') signal.throwIfAborted()
      if (job.payload === 'break') throw new Error('after the cancel')
      return 'done'
    }
    await withWorker(queue.name, handler, { concurrency: 3 }, async () => {
      // Once is enough: what takes longer does so each time, but for pauses of the machine.
      for (let round = 0; round < 3 && !(Math.max(...heard) < 1500); ++round) {
        heard.length = 0
        const jobs = await Promise.all(['give up', 'break', 'finish'].map((each) =>
          queue.add(each)))
        await until('they run', async () => (await queue.stats())['active'] === 3)
        cancelled = performance.now()
        for (const job of jobs) assert.equal(await job.cancel({ reason: 'enough' }), 'signalled')
        const ends = await Promise.allSettled(jobs.map((job) => job.result()))
        const states = ends.map((end) =>
          end.status === 'fulfilled' ? end.value : end.reason.state)
        assert.deepEqual(states, ['cancelled', 'cancelled', 'done'])
      }
      assert.ok(Math.max(...heard) < 1500, `${heard}`)
    })
  },

  'a lost lease is heard, and its result is not sent': async () => {
    const queue = newQueue<number, unknown>()
    const lost: string[] = []
    const reasons: unknown[] = []
    const handler: Handler<number, unknown> = async (job, { signal }) => {
      if (job.attempt > 1 || job.payload === 2) return job.attempt
      reasons.push(await aborted(signal))
      return 'stale'
    }
    await withWorker(queue.name, handler, {
      concurrency: 2, onLost: (job) => lost.push(job.id),
    }, async () => {
      const job = await queue.add(1)
      await until('it runs', async () => (await job.get())?.state === 'active')
      await job.cancel({ grace: 0 })
      await until('it is lost', () => reasons.length === 1)
      assert.ok(reasons[0] instanceof LeaseLost)
      assert.deepEqual(lost, [job.id])
      assert.equal((await job.get())?.state, 'cancelled')
      assert.equal(await (await queue.add(2)).result(), 1)
    })
  },

  'a job that comes again while its lost run continues': async () => {
    const queue = newQueue<number, unknown>()
    const lost: number[] = []
    const released = new AbortController()
    await withWorker<number, number>(queue.name, async ({ payload }) => {
      await aborted(released.signal)
      return payload
    }, { concurrency: 3, onLost: (job) => lost.push(job.payload) }, async (worker) => {
      const other = await queue.add(0)
      const job = await queue.add(1, { id: 'nightly' })
      await until('they run', () => worker.active === 2)
      await job.cancel({ grace: 0 })
      await queue.add(2, { id: 'nightly', ifdup: 'replace' })
      await until('it runs again', () => worker.active === 3)
      await until('the first is lost', () => lost.length === 1)
      released.abort()
      assert.deepEqual([await other.result(), await job.result()], [0, 2])
      assert.deepEqual(lost, [1])
    })
  },

  'a progress that is refused does not cost the lease': async () => {
    const queue = newQueue<number, unknown>()
    await redis.call('Q.CONFIG', queue.name, 'SET', 'max_payload', '1000')
    const handler: Handler<number, unknown> = async (job, { progress }) => {
      for (let n = 0; n < 40; ++n) {
        progress('x'.repeat(2000))
        await pause(100)
      }
      return job.attempt
    }
    await withWorker(queue.name, handler, { lease: 1500 }, async () => {
      assert.equal(await (await queue.add(1)).result(), 1)
      assert.equal((await queue.stats())['reclaimed'], 0)
    })
  },

  'hooks, and what they throw': async () => {
    const queue = newQueue<string, string>()
    const seen: string[] = []
    const errors: string[] = []
    const ignore = (): void => undefined
    await withWorker<string, string>(queue.name, ({ payload }) => {
      if (payload === 'no') throw new Error('no')
      return payload
    }, {
      logger: { debug: ignore, info: ignore, warn: ignore, error: (text) => errors.push(text) },
      onStarted: (job) => seen.push(`started ${job.payload}`),
      onCompleted: (job, result) => {
        seen.push(`completed ${job.payload} ${result}`)
        throw new Error('of a hook')
      },
      onFailed: (job, error) => seen.push(`failed ${job.payload} ${(error as Error).message}`),
    }, async () => {
      await (await queue.add('yes')).result()
      await (await queue.add('no')).result().catch(ignore)
      await until('all hooks', () => seen.length === 4)
    })
    assert.deepEqual(seen, ['started yes', 'completed yes yes', 'started no', 'failed no no'])
    assert.match(String(errors), /hook onCompleted threw: of a hook/)
  },

  'several queues, keys and fields': async () => {
    const [first, second] = [newQueue<number, unknown>(), newQueue<number, unknown>()]
    await second.add(1, { keys: ['k'], tags: { a: 'b' }, group: 'ann' })
    await first.add(2, { keys: ['k'] })
    await first.add(3)
    const seen: unknown[] = []
    const worker = new Worker<number, void>([first.name, second.name], (job) => {
      seen.push([job.queue, job.payload, job.tags, job.group])
    }, { url, match: ['k'], with: ['tags', 'group'], burst: true, signals: false })
    await worker.run()
    assert.deepEqual(seen, [[first.name, 2, {}, ''], [second.name, 1, { a: 'b' }, 'ann']])
    assert.equal((await first.stats())['pending'], 1)
  },

  'results of the jobs that one needs': async () => {
    const queue = newQueue<number, unknown>()
    await queue.add(1, { id: 'some' })
    await queue.add(0, { id: 'none' })
    const job = await queue.add(2, { needs: ['some', 'none'] })
    await new Worker<number, unknown>(queue.name, ({ payload, needResults }) => {
      if (payload === 2) return [...needResults].sort()
      return payload === 1 ? { a: [1] } : undefined
    }, { url, with: ['needResults'], burst: true, signals: false }).run()
    assert.deepEqual(await job.result(), [['none', null], ['some', { a: [1] }]])
  },

  'burst ends without jobs, maxJobs after that many': async () => {
    const queue = newQueue<number, number>()
    await queue.addMany(Array.from({ length: 30 }, (_, payload) => ({ payload })))
    const options = { url, concurrency: 4, signals: false, logger: null }
    await new Worker(queue.name, () => pause(1), { ...options, maxJobs: 10 }).run()
    assert.deepEqual(await states(queue.name), { pending: 20, active: 0, completed: 10 })
    await new Worker(queue.name, () => pause(1), { ...options, burst: true }).run()
    assert.deepEqual(await states(queue.name), { pending: 0, active: 0, completed: 30 })
  },

  'stop lets runs end within grace, and gives the rest back': async () => {
    const queue = newQueue<number, unknown>()
    const reasons: unknown[] = []
    let end!: () => void
    const stopped = new Promise<void>((resolve) => { end = resolve })
    const worker = new Worker<number, unknown>(queue.name, async ({ payload }, { signal }) => {
      if (payload === 0) return await stopped
      reasons.push(await aborted(signal))
    }, { url, concurrency: 2, grace: 800, signals: false, logger: null })
    const running = worker.run()
    const jobs = [await queue.add(0), await queue.add(1), await queue.add(2)]
    await until('they run', () => worker.active === 2)
    const began = performance.now()
    const stopping = worker.stop()
    end()
    await stopping
    await running
    assert.ok(performance.now() - began < 5000)
    assert.ok(reasons.length === 1 && reasons[0] instanceof ShuttingDown)
    const ends = await Promise.all(jobs.map((job) => job.get()))
    assert.deepEqual(ends.map((job) => [job?.state, job?.attempts]),
      [['completed', 1], ['pending', 0], ['pending', 0]])
    assert.throws(() => worker.run(), /called before/)
  },

  'the queue is deleted under the worker': async () => {
    const queue = newQueue<number, number>()
    let lost = 0
    await withWorker<number, number>(queue.name, async ({ payload }, { signal }) => {
      if (payload === 0) await aborted(signal)
      return payload
    }, { onLost: () => ++lost, concurrency: 2 }, async () => {
      await queue.add(0)
      await until('it runs', async () => (await queue.stats())['active'] === 1)
      await redis.del(queue.name)
      await until('it is lost', () => lost === 1)
      assert.equal(await (await queue.add(5)).result(), 5)
    })
  },

  'two connections, one pop at a time, ends together': async () => {
    const queue = newQueue<number, number>()
    await withWorker<number, number>(queue.name, async ({ payload }) => {
      await pause(20)
      return payload
    }, { concurrency: 8 }, async (worker) => {
      const jobs = await queue.addMany(Array.from({ length: 200 }, (_, payload) => ({ payload })))
      for (const job of jobs) if (job.status === 'fulfilled') await job.value.result()
      const mine = String(await redis.client('LIST')).split('name=sluice-worker').length - 1
      assert.equal(mine, 2)
      assert.ok(worker.name.includes(`:${process.pid}:`))
      const calls = String(await redis.info('commandstats'))
      const acks = Number(/cmdstat_q\.ack:calls=(\d+)/.exec(calls)?.[1] ?? 0)
      assert.ok(acks > 0)
    })
  },

  'a quiet worker gets no jobs': async () => {
    const queue = newQueue<number, number>()
    const known = await redis.call('Q.CONFIG', queue.name, 'WORKER', 'none', 'SET', 'quiet', 'on')
      .then(() => true, () => false)
    if (!known) return console.log('  this server has no quiet workers')
    await withWorker<number, number>(queue.name, async ({ payload }, { signal }) => {
      if (payload === 0) await aborted(signal)
      return payload
    }, { concurrency: 2 }, async (worker) => {
      await queue.add(0)
      await until('it runs', () => worker.active === 1)
      await redis.call('Q.CONFIG', queue.name, 'WORKER', worker.name, 'SET', 'quiet', 'on')
      await until('it is quiet', () => worker.quiet)
      const job = await queue.add(1)
      await pause(300)
      assert.equal((await job.get())?.state, 'pending')
      await redis.call('Q.CONFIG', queue.name, 'WORKER', worker.name, 'SET', 'quiet', 'off')
      assert.equal(await job.result(), 1)
      await until('it is no longer quiet', () => !worker.quiet)
    })
  },

  'a worker of two queues that is quiet in one of them': async () => {
    const [first, second] = [newQueue<number, void>(), newQueue<number, void>()]
    const notes: string[] = []
    const ignore = (): void => undefined
    const logger = {
      debug: ignore, warn: ignore, error: ignore,
      info: (note: string): void => { if (note.includes('quiet')) notes.push(note) },
    }
    const released = new AbortController()
    await withWorker<number, void>([first.name, second.name], async (_job, { signal }) => {
      if (released.signal.aborted) return
      await Promise.race([aborted(released.signal), aborted(signal)])
    }, { concurrency: 3, heartbeat: 50, logger }, async (worker) => {
      const jobs = [await first.add(1), await second.add(2)]
      await until('they run', () => worker.active === 2)
      await redis.call('Q.CONFIG', first.name, 'WORKER', worker.name, 'SET', 'quiet', 'on')
      await until('it is quiet', () => worker.quiet)
      await pause(500)  // Some heartbeats.
      assert.deepEqual(
        notes.map((note) => note.replace(/.*: /, '')), [`it is quiet in ${first.name}`])
      released.abort()
      for (const job of jobs) await job.result()
      await redis.call('Q.CONFIG', first.name, 'WORKER', worker.name, 'SET', 'quiet', 'off')
      await (await first.add(3)).result()
      assert.equal(worker.quiet, false)
    })
  },

  'what a server refuses ends the worker': async () => {
    for (const concurrency of [0, 1.5, NaN]) {
      await assert.rejects(refusal({ concurrency }), RangeError)
    }
    const away = await refusal({ url: 'redis://127.0.0.1:1', connectTimeout: 200 })
    assert.ok(away instanceof Unreachable, String(away))
    const unknown = await refusal({ url: 'redis://no.such.host.invalid', connectTimeout: 200 })
    assert.ok(unknown instanceof Unreachable, String(unknown))
    await redis.call('ACL', 'SETUSER', 'nobody', 'on', '>secret', '~*', '+client')
    const wrong = await refusal({ url: url.replace('//', '//nobody:wrong@') })
    assert.ok(wrong instanceof SluiceError && /WRONGPASS/.test(wrong.message), String(wrong))
    await redis.config('SET', 'requirepass', 'secret')
    const nobody = await refusal({})
    await redis.config('SET', 'requirepass', '')
    assert.ok(nobody instanceof NotAuthenticated, String(nobody))
    const noRight = await refusal({ url: url.replace('//', '//nobody:secret@') })
    assert.ok(noRight instanceof NoPermission, String(noRight))
    await redis.call('SET', 'text', 'x')
    assert.ok(await refusal({}, 'text') instanceof WrongType)
    await redis.call('Q.ADOPT', 'adopted', 'PENDING', 'waiting', 'ACTIVE', 'running')
    assert.ok(await refusal({}, 'adopted') instanceof Adopted)
    const other = process.env['REDIS_PORT']
    if (other === undefined) return console.log('  there is no redis-server')
    const older = await refusal({ url: `redis://127.0.0.1:${other}` })
    assert.ok(older instanceof CommandError, String(older))
  },
})

async function states(queue: string): Promise<Record<string, unknown>> {
  const flat = await redis.call('Q.STATS', queue) as unknown[]
  const value = (name: string): unknown => flat[flat.indexOf(name) + 1]
  return { pending: value('pending'), active: value('active'), completed: value('completed') }
}
