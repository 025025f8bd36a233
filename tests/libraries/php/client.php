<?php
// phpredis as its users use it. The server dies in the middle.
declare(strict_types=1);

const WRITES = 600;
const PATIENCE_S = 60;

function require_that(bool $condition, string $what): void {
    if (!$condition) {
        echo "FAILED: $what\n";
        exit(1);
    }
}

function equal($got, $expected): void {
    require_that($got === $expected,
        'got ' . var_export($got, true) . ', expected ' . var_export($expected, true));
}

function open(): Redis {
    $client = new Redis();
    $client->connect('127.0.0.1', (int) getenv('SLUICE_PORT'), PATIENCE_S);
    $client->setOption(Redis::OPT_READ_TIMEOUT, PATIENCE_S);
    return $client;
}

function values(Redis $client): void {
    $bytes = implode('', array_map('chr', range(0, 255)));
    equal($client->set('bytes', $bytes, ['px' => 60000]), true);
    equal($client->get('bytes'), $bytes);
    $large = str_repeat("grüße\0", 200000);
    $client->set('large', $large);
    require_that($client->get('large') === $large, 'a large value came back changed');
    equal($client->get('none'), false);
    equal($client->hMSet('map', ['a' => '1', 'b' => 'zwei']), true);
    equal($client->hGetAll('map'), ['a' => '1', 'b' => 'zwei']);
    equal($client->zAdd('scores', 1.5, 'a', 2, 'b'), 2);
    equal($client->zRange('scores', 0, -1, true), ['a' => 1.5, 'b' => 2.0]);
    equal($client->incr('map'), false);
    require_that(str_starts_with($client->getLastError(), 'WRONGTYPE '), 'the error of INCR');
    equal($client->type('map'), Redis::REDIS_HASH);
    equal($client->object('encoding', 'map'), 'listpack');
    equal((string) $client->info('server')['tcp_port'], getenv('SLUICE_PORT'));
}

function units(Redis $client): void {
    $pipe = $client->pipeline();
    for ($n = 0; $n < 500; $n++) {
        $pipe->incr('many');
    }
    equal($pipe->exec(), range(1, 500));
    equal($client->multi()->incr('many')->get('many')->exec(), [501, '501']);
    $client->watch('many');
    open()->incr('many');
    equal($client->multi()->set('many', '0')->exec(), false);
    $script = "return redis.call('INCRBY', KEYS[1], ARGV[1])";
    equal($client->eval($script, ['many', 10], 1), 512);
    equal($client->evalSha(sha1($script), ['many', 10], 1), 522);
}

function scans_and_streams(Redis $client): void {
    for ($n = 0; $n < 500; $n++) {
        $client->set("scan:$n", $n);
    }
    $client->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
    $keys = [];
    $cursor = null;
    while (($some = $client->scan($cursor, 'scan:*', 50)) !== false) {
        foreach ($some as $key) {
            $keys[$key] = true;
        }
    }
    equal(count($keys), 500);
    $id = $client->xAdd('stream', '*', ['f' => 'v']);
    $client->xGroup('CREATE', 'stream', 'group', '0');
    equal($client->xReadGroup('group', 'me', ['stream' => '>']), ['stream' => [$id => ['f' => 'v']]]);
    equal($client->xAck('stream', 'group', [$id]), 1);
    $client->rPush('list', 'x');
    equal($client->blPop(['none', 'list'], PATIENCE_S), ['list', 'x']);
}

// What was acknowledged is there; what was under way may be or not, and nothing comes twice.
function through_a_kill(Redis $client): void {
    $acknowledged = 0;
    $unknown = 0;
    $script = "redis.call('RPUSH', KEYS[2], ARGV[1]) return redis.call('INCR', KEYS[1])";
    // It continues until it has seen the kill.
    for ($n = 0; $n < WRITES || $unknown === 0; $n++) {
        if ($n === WRITES / 2) {
            echo "kill\n";
        }
        try {
            require_that(is_int($client->eval($script, ['count', 'log', $n], 2)), 'a reply');
            $acknowledged++;
        } catch (RedisException $error) {
            $unknown++;
            $deadline = microtime(true) + PATIENCE_S;
            while (true) {
                try {
                    $client = open();
                    require_that($client->ping(), 'a reply to PING');
                    break;
                } catch (RedisException $refused) {
                    require_that(microtime(true) < $deadline, 'the server did not come back');
                    usleep(20000);
                }
            }
        }
    }
    equal(fgets(STDIN), "restarted\n");
    $count = (int) $client->get('count');
    echo "$acknowledged acknowledged, $unknown unknown, $count counted\n";
    require_that($count >= $acknowledged && $count <= $acknowledged + $unknown, 'the count');
    equal($client->lLen('log'), $count);
}

$client = open();
values($client);
units($client);
scans_and_streams($client);
through_a_kill($client);
echo "all of it holds\n";
