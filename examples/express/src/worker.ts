// Runs what app.ts submits.
import { setImmediate as others } from 'node:timers/promises'
import { Worker } from '@sluice/queue'
import type { Found, Run } from './app.js'

const worker = new Worker<Run, Found>('primes', async (job, { signal, progress }) => {
  const { below } = job.payload
  const composite = new Uint8Array(below)
  let primes = 0
  for (let number = 2; number < below; number++) {
    if (number % 100_000 === 0) {
      progress(Math.floor(number * 100 / below))
      await others() // heartbeats and cancels need the event loop
      signal.throwIfAborted()
    }
    if (composite[number] !== 0) continue
    primes++
    for (let multiple = number * number; multiple < below; multiple += number) {
      composite[multiple] = 1
    }
  }
  return { primes }
}, { concurrency: 2 })
await worker.run()
