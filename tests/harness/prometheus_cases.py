"""For each alert of conf/prometheus-alerts.yml: series on which it fires, and such on which it must
not; and the file for `promtool test rules` that says so.

A series is a name with labels and its values, a sample each 30 s, in promtool's notation: `5x80` is
5 and 80 more of it, `0+3x80` grows by 3.
"""

STEP = "30s"
EVALUATED_AT = "40m"
QUEUE = '{job="sluice",instance="s",db="0",queue="q"}'
SERVER = '{job="sluice",instance="s"}'
REASON = '{job="sluice",instance="s",db="0",queue="q",reason="%s"}'
BOUND = '{job="sluice",instance="s",le="%s"}'


def queue_of(depth="5x80", used="1x80", cap="4x80", paused="0x80", started="7x80"):
    return {"queue_depth" + QUEUE: depth, "queue_slots_used" + QUEUE: used,
            "queue_slots_max" + QUEUE: cap, "queue_paused" + QUEUE: paused,
            "queue_schedule_total" + QUEUE: started}


def runs(name, count, started):
    return {name + QUEUE: count, "queue_schedule_total" + QUEUE: started}


def syncs(fast, all_of_them):
    return {"sluice_journal_sync_seconds_bucket" + BOUND % "0.016": fast,
            "sluice_journal_sync_seconds_bucket" + BOUND % "1.024": all_of_them,
            "sluice_journal_sync_seconds_bucket" + BOUND % "+Inf": all_of_them}


def refused(reason, count):
    return {"queue_rejected_total" + REASON % reason: count}


def journal(last, durable):
    return {"sluice_journal_last_lsn" + SERVER: last,
            "sluice_journal_durable_lsn" + SERVER: durable}


def memory(used, limit):
    return {"sluice_memory_used_bytes" + SERVER: used, "sluice_memory_max_bytes" + SERVER: limit}


def one(name, labels, values):
    return {name + labels: values}


def leads(values, instance="s", group="1"):
    labels = f'{{job="sluice",instance="{instance}",cluster="main",group="{group}"}}'
    return {"sluice_group_primary" + labels: values}


def primaries(here, there, other_group="1"):
    return {**leads(here), **leads(there, "t"), **leads("1x80", "u", other_group)}


def lone(primary, nodes):
    return {**leads(primary), "sluice_group_nodes" + SERVER: nodes}


def copies(count, nodes, primary="1x80"):
    return {"sluice_group_copies" + SERVER: count, **lone(primary, nodes)}


def journal_in_etcd(size, primary="1x80"):
    return {"sluice_group_log_bytes" + SERVER: size,
            "sluice_group_log_limit_bytes" + SERVER: "1000x80",
            **leads(primary)}


def etcd(size, quota):
    return {"sluice_group_etcd_bytes" + SERVER: size,
            "sluice_group_etcd_quota_bytes" + SERVER: quota}


def differing(count, primary="1x80"):
    return {'sluice_group_differing_nodes{job="sluice",instance="s",what="config"}': count,
            'sluice_group_differing_nodes{job="sluice",instance="s",what="users"}': "0x80",
            **leads(primary)}


# name: (series that fire the alert, [series that do not])
TROUBLES = {
    "SluiceDown": (one("up", SERVER, "1x70 0x10"), [one("up", SERVER, "1x80"),
                                                    one("up", '{job="other"}', "0x80")]),
    "SluiceNoPrimary": (primaries("1x60 0x20", "0x80", other_group="2"),
                        [primaries("1x60 0x20", "0x60 1x20", other_group="2"),
                         primaries("1x60 0x20", "0x80"), one("up", SERVER, "1x80")]),
    "SluiceNoStandby": (lone("1x80", "2x60 1x20"), [lone("1x80", "2x80"), lone("0x80", "1x80")]),
    "SluiceStandbyBehind": (one("sluice_group_lag_seconds", SERVER, "0+1x80"),
                            [one("sluice_group_lag_seconds", SERVER, "0.2x80"),
                             one("sluice_group_lag_seconds", SERVER, "0x79 9")]),
    "SluiceOneCopy": (copies("2x30 1x50", "2x80"),
                      [copies("2x80", "2x80"), copies("1x80", "1x80"),
                       copies("1x80", "2x80", primary="0x80"), copies("2x60 1x20", "2x80")]),
    "SluiceNodesDiffer": (differing("1x80"),
                          [differing("0x80"), differing("1x80", primary="0x80"),
                           differing("0x60 1x20")]),
    "SluiceJournalInEtcdNearlyFull": (journal_in_etcd("751x80"),
                                      [journal_in_etcd("750x80"),
                                       journal_in_etcd("999x80", primary="0x80")]),
    "SluiceEtcdNearlyFull": (etcd("801x80", "1000x80"),
                             [etcd("800x80", "1000x80"), etcd("6871947673x80", "0x80")]),
    "SluiceEtcdUnreachable": (one("sluice_group_age_seconds", SERVER, "0.1x60 6+30x20"),
                              [one("sluice_group_age_seconds", SERVER, "0.2x80")]),
    "SluiceQueueStalled": (queue_of(), [queue_of(depth="0x80"), queue_of(used="4x80"),
                                        queue_of(paused="1x80"), queue_of(started="0+1x80")]),
    "SluiceOldestJobWaits": (one("queue_oldest_seconds", QUEUE, "0+30x80"),
                             [one("queue_oldest_seconds", QUEUE, "300x80")]),
    "SluiceJobsRefused": (refused("queue_full", "0+1x80"),
                          [refused("queue_full", "9x80"), refused("duplicate", "0+1x80"),
                           refused("group_full", "0+1x80")]),
    "SluiceReclaimStorm": (runs("queue_reclaimed_total", "0+5x80", "0+10x80"),
                           [runs("queue_reclaimed_total", "0+5x80", "0+1000x80"),
                            runs("queue_reclaimed_total", "3x80", "0+1x80")]),
    "SluiceJobsFail": (runs("queue_failed_total", "0+8x80", "0+10x80"),
                       [runs("queue_failed_total", "0+8x80", "0+100x80")]),
    "SluiceTimersLate": (one("queue_timer_lag_seconds", QUEUE, "9x80"),
                         [one("queue_timer_lag_seconds", QUEUE, "0.2x80"),
                          one("queue_timer_lag_seconds", QUEUE, "0x79 9")]),
    "SluiceClockSet": (one("sluice_queue_time_ahead_seconds", SERVER, "0x70 -3600x10"),
                       [one("sluice_queue_time_ahead_seconds", SERVER, "31536000-0.06x80")]),
    "SluiceCheckpointFailed": (one("sluice_checkpoints_failed_total", SERVER, "0x60 1x20"),
                               [one("sluice_checkpoints_failed_total", SERVER, "2x80")]),
    "SluiceJournalStuck": (journal("0+9x80", "0+9x60 540x20"),
                           [journal("1+9x80", "0+9x80"), journal("540x80", "540x80")]),
    "SluiceCommitsSlow": (syncs("0x80", "0+100x80"), [syncs("0+100x80", "0+100x80")]),
    "SluiceDiskNearlyFull": (one("sluice_disk_nearly_full", SERVER, "1x80"),
                             [one("sluice_disk_nearly_full", SERVER, "0x80")]),
    "SluiceMemoryNearLimit": (memory("950x80", "1000x80"),
                              [memory("800x80", "1000x80"), memory("950x80", "0x80")]),
}


def rule_test(name, series, fires):
    return {"interval": STEP, "name": f"{name} {'fires' if fires else 'does not fire'}",
            "input_series": [{"series": key, "values": values} for key, values in series.items()],
            "promql_expr_test": [{
                "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
                "eval_time": EVALUATED_AT,
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else []}]}


def rule_tests(rules):
    """A file of `promtool test rules` for the file of rules."""
    tests = []
    for name, (trouble, healthy) in TROUBLES.items():
        tests.append(rule_test(name, trouble, True))
        tests += [rule_test(name, series, False) for series in healthy]
    return {"rule_files": [rules], "evaluation_interval": STEP, "tests": tests}
