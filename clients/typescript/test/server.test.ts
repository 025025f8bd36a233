import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from '../src/index.js'
import { sentinelOptions, shownUrl } from '../src/server.js'

test('a URL of Sentinels names them, the primary, the user and the database', () => {
  const { sentinels, name, db, username, password } =
    sentinelOptions('redis+sentinel://ann:p%40ss@a:1,[::1]:2,b/main/3')
  assert.deepEqual(sentinels,
    [{ host: 'a', port: 1 }, { host: '::1', port: 2 }, { host: 'b', port: 26379 }])
  assert.deepEqual([name, db, username, password], ['main', 3, 'ann', 'p@ss'])
  const plain = sentinelOptions('redis+sentinel://a/main')
  assert.deepEqual([plain.name, plain.db, 'password' in plain], ['main', 0, false])
  assert.equal(sentinelOptions('redis+sentinel://:p@a/main').password, 'p')
})

test('what is no such URL is refused', () => {
  for (const url of ['redis+sentinel://a:1', 'redis+sentinel:///main', 'redis+sentinel://a:b/main',
    'redis+sentinel://a/main/x']) {
    assert.throws(() => sentinelOptions(url), /host\[:port\]/, url)
    assert.throws(() => new Worker('exec', () => null, { url }), TypeError, url)
  }
})

test('a URL is shown without its password', () => {
  assert.equal(shownUrl({ url: 'redis+sentinel://ann:secret@a:1,b/main' }),
    'redis+sentinel://a:1,b/main')
})
