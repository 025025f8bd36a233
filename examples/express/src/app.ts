// A web service: a run is submitted, waits its turn in a queue, and is streamed to the browser.
import { GroupFull, Queue, QueueFull, TooLate } from '@sluice/queue'
import express, { type Request, type Response } from 'express'

export interface Run { below: number }
export interface Found { primes: number }

const ENDS = new Set(['completed', 'failed', 'cancelled', 'expired'])
const MOST = 10_000_000

const queue = new Queue<Run, Found>('primes')
const app = express()
app.use(express.json())
app.use(express.static(new URL('../public', import.meta.url).pathname))

app.post('/runs', async (request: Request, response: Response) => {
  const { below, user } = request.body as { below?: unknown, user?: unknown }
  const good = Number.isInteger(below) && Number(below) > 1 && Number(below) <= MOST
  if (!good || typeof user !== 'string' || user === '') {
    response.status(422).json({ detail: `below is 2 to ${MOST}, user is a name` })
    return
  }
  try {
    // Refused at once if it would wait for more than a minute.
    const job = await queue.add({ below: Number(below) }, { group: user, maxWait: 60_000 })
    response.status(202).json({ id: job.id, position: job.position, eta: job.eta })
  } catch (error) {
    const full = error instanceof QueueFull || error instanceof GroupFull ||
      error instanceof TooLate
    if (!full) throw error
    response.status(429).json({ detail: `too many runs: ${error.message}` })
  }
})

app.delete('/runs/:id', async (request: Request, response: Response) => {
  const id = request.params['id'] ?? ''
  response.json({ outcome: await queue.cancel(id, { reason: 'by its user' }) })
})

// Server-sent events. A browser that reconnects says which it has seen, and gets the rest.
app.get('/runs/:id/events', async (request: Request, response: Response) => {
  const id = request.params['id'] ?? ''
  if (await queue.get(id) === null) {
    response.status(404).json({ detail: 'no such run' })
    return
  }
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  response.type('text/event-stream')
  const from = Number(request.get('Last-Event-ID') ?? 0)
  for await (const event of queue.events({ from, id: [id], signal: gone.signal })) {
    const job = await queue.get(id, { with: ['result'] })
    if (job === null) break
    const { state, progress, result, error } = job
    const data = JSON.stringify({ state, progress, result, error })
    response.write(`id: ${event.seq}\nevent: ${event.type}\ndata: ${data}\n\n`)
    if (ENDS.has(event.type)) break
  }
  response.end()
})

const server = app.listen(Number(process.env['PORT'] ?? 8000), 'localhost')
process.once('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
  void queue.close()
})
