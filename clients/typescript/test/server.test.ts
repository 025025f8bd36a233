import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { Queue, Worker } from '../src/index.js'
import { sharedLinks } from '../src/pool.js'
import { newRedis, sentinelOptions, shownUrl, unixOptions } from '../src/server.js'

test('a URL of Sentinels names them, the primary, the user and the database', () => {
  const { sentinels, name, db, username, password } =
    sentinelOptions('redis+sentinel://ann:p%40ss@a:1,[::1]:2,b/main/3')
  assert.deepEqual(sentinels,
    [{ host: 'a', port: 1 }, { host: '::1', port: 2 }, { host: 'b', port: 26379 }])
  assert.deepEqual([name, db, username, password], ['main', 3, 'ann', 'p@ss'])
  const plain = sentinelOptions('redis+sentinel://a/main')
  assert.deepEqual([plain.name, plain.db, 'password' in plain], ['main', 0, false])
  assert.equal(sentinelOptions('redis+sentinel://:p@a/main').password, 'p')
  assert.equal(sentinelOptions('redis+sentinel://ann:p:q@a/main').password, 'p:q')
})

test('what is no such URL is refused', () => {
  for (const url of ['redis+sentinel://a:1', 'redis+sentinel:///main', 'redis+sentinel://a:b/main',
    'redis+sentinel://a/main/x', 'redis+sentinel://a/100%', 'redis+sentinel://ann:100%@a/main']) {
    assert.throws(() => sentinelOptions(url), /host\[:port\]/, url)
    assert.throws(() => new Worker('exec', () => null, { url }), TypeError, url)
  }
})

test('a URL of a Unix socket names the path, the user, the password and the database', () => {
  const read = (url: string): unknown[] => {
    const { path, username, password, db } = newRedis({ url }, 'test').options
    return [path, username, password, db]
  }
  assert.deepEqual(read('unix:///run/a%20b'), ['/run/a b', null, null, 0])
  assert.deepEqual(read('unix://ann:p%40s:s@/run/s?db=3'), ['/run/s', 'ann', 'p@s:s', 3])
  assert.deepEqual(read('unix://:secret@/run/s'), ['/run/s', null, 'secret', 0])
  assert.deepEqual(read('UNIX:///run/s?db=2&username=ann&password=p%26s'),
    ['/run/s', 'ann', 'p&s', 2])
  assert.deepEqual(read('unix://ann:p@/run/s?password=other'), ['/run/s', 'ann', 'p', 0])
  const { db, password, path } = newRedis(
    { url: 'unix:///run/s', redis: { db: 4, password: 'p', path: '/other' } }, 'test').options
  assert.deepEqual([path, password, db], ['/run/s', 'p', 4])
  assert.equal(shownUrl({ url: 'unix://ann:secret@/run/s?password=secret' }), 'unix:///run/s')
})

test('what of such a URL would not be used is refused', () => {
  for (const url of ['unix://', 'unix:///', 'unix://host/run/s', 'unix:///run/s?db=x',
    'unix:///run/s?db=', 'unix:///run/s?passwort=secret', 'unix://:100%@/run/s',
    'unix:///run/s#1', 'unix://ann:p/s@/run/s']) {
    assert.throws(() => unixOptions(url), TypeError, url)
    assert.throws(() => new Worker('exec', () => null, { url }), /URL of a Unix socket/, url)
  }
})

test('a bad URL is refused before the first try', async () => {
  const bad = ['http://a', 'redis://a:b', 'redis://a/main', 'redis://:100%@a',
    'redis+sentinel://:100%@a/main', 'REDIS+SENTINEL://a/main', 'foo+bar://a']
  for (const url of bad) {
    assert.throws(() => new Worker('exec', () => null, { url }), /URL|URI/, url)
    await assert.rejects(new Queue('exec', { url }).add(1), /URL|URI/, url)
  }
  for (const url of ['redis://:p%40ss%25@[::1]:1/2', 'rediss://a', 'a:6379', 'unix:///run/sluice',
    'REDIS://a?family=6']) {
    assert.ok(new Worker('exec', () => null, { url }), url)
  }
  assert.ok(new Worker('exec', () => null, { redis: { host: 'a' } }))
})

test('a URL is shown without its password', () => {
  assert.equal(shownUrl({ url: 'redis+sentinel://ann:secret@a:1,b/main' }),
    'redis+sentinel://a:1,b/main')
})

test('options of ioredis alone say where the server is, and are shown', () => {
  assert.equal(newRedis({ redis: { port: 1234 } }, 'test').options.port, 1234)
  assert.equal(shownUrl({ redis: { port: 1234 } }), 'redis://localhost:1234')
  assert.equal(shownUrl({ redis: { host: 'db', password: 'secret' } }), 'redis://db:6379')
  assert.equal(shownUrl({ redis: { path: '/run/sluice' } }), '/run/sluice')
  assert.equal(shownUrl({ redis: { sentinels: [{ host: 'a' }, { port: 5 }], name: 'main' } }),
    'redis+sentinel://a:26379,localhost:5/main')
  assert.equal(shownUrl({ url: 'redis://a:1', redis: { host: 'b' } }), 'redis://a:1')
  assert.equal(shownUrl({ url: 'redis://:p@ss@a:1/2?password=x' }), 'redis://a:1/2')
})

test('the name of a worker has its host and its process, and no other worker has it', () => {
  const names = Array.from({ length: 100 }, () =>
    new Worker('q', () => null, { signals: false, logger: null }).name)
  assert.equal(new Set(names).size, 100)
  const begin = `${hostname()}:${process.pid}:`
  assert.deepEqual(names.filter((name) => !name.startsWith(begin)), [])
  assert.equal(new Worker('q', () => null, { name: 'mine', logger: null }).name, 'mine')
})

test('queues share connections if URL and options are the same', () => {
  const [url, other, redis] = ['redis://a', 'redis://b', {}]
  const first = sharedLinks({ url, redis }, 'q')
  assert.equal(sharedLinks({ url, redis }, 'r'), first)
  const others = [{ url: other, redis }, { url, redis: {} }, { url }].map((each) =>
    sharedLinks(each, 'q'))
  assert.equal(new Set([first, ...others]).size, 4)
  first.release('r')
  assert.equal(sharedLinks({ url, redis }, 'q'), first)
  for (const links of [first, first, ...others]) links.release('q')
  assert.notEqual(sharedLinks({ url, redis }, 'q'), first)
})

test('what waits for the results of a queue ends with the last user of that queue', () => {
  const server = { url: 'redis://c' }
  const links = sharedLinks(server, 'long')
  for (const _ of [1, 2]) sharedLinks(server, 'short')
  const waiter = links.waiter('short')
  links.release('short')
  assert.equal(links.waiter('short'), waiter)
  links.release('short')
  assert.notEqual(links.waiter('short'), waiter)
  assert.equal(links.commands.closed, false)
})
