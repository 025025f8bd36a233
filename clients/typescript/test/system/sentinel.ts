// Jobs are added and run through a failover: the server is the one of SLUICE_URL, a URL of
// Sentinels. After half of the jobs it prints "half" (tests/clients/sentinel_test.py).
import assert from 'node:assert/strict'
import { Queue, Worker } from '../../src/index.js'
import { pause, play } from './check.js'

const COUNT = 60

await play({
  'a failover': async () => {
    const queue = new Queue<number, number>('exec')
    const worker = new Worker<number, number>('exec', (job) => job.payload * 2,
      { concurrency: 4, signals: false, logger: null })
    const running = worker.run()
    const results: Promise<number>[] = []
    for (let n = 0; n < COUNT; ++n) {
      if (n === COUNT / 2) console.log('half')
      const job = await queue.add(n)
      results.push(job.result({ timeout: 60_000 }))
      await pause(20)
    }
    assert.deepEqual(await Promise.all(results), Array.from(results, (_, n) => 2 * n))
    await worker.stop()
    await running
    queue.close()
  },
})
