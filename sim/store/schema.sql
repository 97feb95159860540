-- schema.sql: results.db, in sections that begin with "-- version N".
--
-- A file's PRAGMA user_version is the last section it has; store_open runs those it lacks, in order and in
-- one transaction, and then sets it. So a section that was released is never edited: add another below.
-- Names are the JSON keys of cli.md; a name ends in its unit. What was not computed is NULL.

-- version 1

-- "offs": says that a file is ours. store.c and plots/query.c refuse every other number.
PRAGMA application_id = 0x6f666673;

-- One row a simulated scenario. Nothing here depends on who computed it, when, or how fast.
CREATE TABLE run (
	key               TEXT PRIMARY KEY NOT NULL CHECK (length(key) = 16), -- 16 hex digits
	scenario          TEXT,    -- canonical text
	version           TEXT,    -- of offsim
	status            TEXT,    -- ok, does_not_fit, or failed
	message           TEXT,    -- why not ok
	fits              INTEGER, -- 1 or 0; NULL when it failed before that was known
	model             TEXT,
	quant             TEXT,
	machine           TEXT,
	engine            TEXT,
	batch             INTEGER, -- sequences that run together
	prompt            INTEGER, -- tokens a sequence
	generate          INTEGER, -- tokens a sequence
	depth             INTEGER, -- tokens already in the KV cache
	decode_tok_s      REAL,
	prefill_tok_s     REAL,
	e2e_tok_s         REAL,
	ttft_s            REAL,
	tpot_s            REAL,
	total_s           REAL,
	upper_bound_tok_s REAL,
	-- 80 % of the plausible values lie between these
	decode_tok_s_low80  REAL, decode_tok_s_high80  REAL,
	prefill_tok_s_low80 REAL, prefill_tok_s_high80 REAL,
	e2e_tok_s_low80     REAL, e2e_tok_s_high80     REAL,
	ttft_s_low80        REAL, ttft_s_high80        REAL,
	tpot_s_low80        REAL, tpot_s_high80        REAL,
	total_s_low80       REAL, total_s_high80       REAL,
	events            INTEGER  -- operations simulated
) STRICT;

-- The keys that were swept or set, in the order of the scenario.
CREATE TABLE run_param (
	key      TEXT NOT NULL REFERENCES run (key) ON DELETE CASCADE,
	name     TEXT NOT NULL, -- "flags.ngl"
	value    TEXT NOT NULL, -- as written
	number   REAL,          -- of a value that is one as a whole: "40", not "40GB/s"
	position INTEGER NOT NULL,
	PRIMARY KEY (key, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE memory_use (
	key              TEXT NOT NULL REFERENCES run (key) ON DELETE CASCADE,
	memory           TEXT NOT NULL,
	capacity_bytes   INTEGER,
	used_bytes       INTEGER, -- the sum of the four below
	weights_bytes    INTEGER,
	kv_bytes         INTEGER,
	activation_bytes INTEGER,
	overhead_bytes   INTEGER,
	PRIMARY KEY (key, memory)
) STRICT, WITHOUT ROWID;

CREATE TABLE resource_use (
	key         TEXT NOT NULL REFERENCES run (key) ON DELETE CASCADE,
	resource    TEXT NOT NULL, -- "gpu0.link.h2d", "gpu0.compute", "overhead"
	busy        REAL,          -- share of total_s in which something was on it
	utilisation REAL,          -- mean rate over capacity
	bytes       REAL,          -- moved
	critical    REAL,          -- share of total_s that it limited; sums to 1 over a run
	PRIMARY KEY (key, resource)
) STRICT, WITHOUT ROWID;

-- What differs from one computation of the same run to the next.
CREATE TABLE run_time (
	key       TEXT PRIMARY KEY NOT NULL REFERENCES run (key) ON DELETE CASCADE,
	wall_s    REAL,
	stored_at TEXT -- UTC, ISO 8601
) STRICT, WITHOUT ROWID;

-- version 2

-- How fast each run decodes and what holds it back: SELECT * FROM throughput ORDER BY decode_tok_s DESC;
CREATE VIEW throughput AS
SELECT
	r.key, r.model, r.quant, r.machine, r.engine, r.batch, r.prompt, r.generate, r.depth, r.fits,
	r.decode_tok_s,
	r.decode_tok_s_low80 AS low80,
	r.decode_tok_s_high80 AS high80,
	r.upper_bound_tok_s,
	u.resource AS limited_by, -- the largest share of the critical path
	u.critical AS limited_share
FROM run AS r
LEFT JOIN resource_use AS u ON u.key = r.key AND u.resource = (
	SELECT w.resource FROM resource_use AS w
	WHERE w.key = r.key AND w.critical > 0
	ORDER BY w.critical DESC, w.resource LIMIT 1
);

-- What lies in each memory: SELECT * FROM memory_fit WHERE free_bytes < 0; shows what did not fit.
CREATE VIEW memory_fit AS
SELECT
	m.key, r.model, r.quant, r.machine, r.engine, r.fits, m.memory,
	m.capacity_bytes, m.used_bytes,
	m.capacity_bytes - m.used_bytes AS free_bytes,
	round(100.0 * m.used_bytes / m.capacity_bytes, 1) AS used_percent,
	m.weights_bytes, m.kv_bytes, m.activation_bytes, m.overhead_bytes
FROM memory_use AS m
JOIN run AS r ON r.key = m.key;

-- version 3

-- What was used when, over two steps from the middle of a run; `offsim run` stores it, sweeps do not. Of one resource there
-- are at most 640 rows: uses are joined until they are a 640th of the stretch long, or the gap behind is, and `busy`
-- says how much of the row something was on it.
CREATE TABLE span (
	key      TEXT NOT NULL REFERENCES run (key) ON DELETE CASCADE,
	position INTEGER NOT NULL, -- order of resources, from 1; 0: the steps themselves
	resource TEXT NOT NULL,    -- "gpu0" (its kernels), "gpu0.link.h2d", "overhead"; "decode" or "prefill": a step
	begin_s  REAL NOT NULL,    -- from the beginning of the first step on
	end_s    REAL NOT NULL,
	busy     REAL NOT NULL,    -- share of the row, above 0
	PRIMARY KEY (key, position, begin_s)
) STRICT, WITHOUT ROWID;

-- version 4

-- Caches of experts. Hits are not tokens: what they are worth stands in run.
CREATE TABLE cache_use (
	key             TEXT NOT NULL REFERENCES run (key) ON DELETE CASCADE,
	cache           TEXT NOT NULL, -- the memory it is in
	lookups         INTEGER,
	hits            INTEGER,
	decode_hit_rate REAL,
	read_bytes      INTEGER, -- brought in from behind, ahead of use or not
	PRIMARY KEY (key, cache)
) STRICT, WITHOUT ROWID;

ALTER TABLE run ADD COLUMN decode_hit_rate REAL; -- of the nearest of them

-- version 5

-- A scenario's operations as they were run for real, beside what the simulator says of the same steps. The last time counts.
CREATE TABLE replay (
	key                 TEXT NOT NULL CHECK (length(key) = 16), -- of the scenario, as in run; it need not be there
	executor            TEXT NOT NULL, -- "cpu", "cuda"
	model               TEXT,
	quant               TEXT,
	machine             TEXT,
	engine              TEXT,
	version             TEXT,    -- of offsim
	steps               INTEGER, -- that count
	repetitions         INTEGER,
	measured_tok_s      REAL,    -- median over the repetitions
	simulated_tok_s     REAL,
	ratio               REAL,    -- measured over simulated
	fastest_tok_s       REAL,    -- of one repetition
	noise               REAL,    -- standard deviation of the repetitions over their mean; NULL: there was one
	-- what one thread of the machine did before and after: where they differ, it was not quiet
	before_copy_bytes_s REAL,
	before_flops_s      REAL,
	after_copy_bytes_s  REAL,
	after_flops_s       REAL,
	stored_at           TEXT,    -- UTC, ISO 8601
	PRIMARY KEY (key, executor)
) STRICT, WITHOUT ROWID;

CREATE TABLE replay_operation (
	key         TEXT NOT NULL,
	executor    TEXT NOT NULL,
	position    INTEGER NOT NULL, -- from 0: the step itself
	operation   TEXT NOT NULL,    -- "kernel ffn cpu0", "copy attn ram>gpu0"
	n           INTEGER,          -- in all steps that count
	measured_s  REAL,             -- a step
	simulated_s REAL,
	PRIMARY KEY (key, executor, position),
	FOREIGN KEY (key, executor) REFERENCES replay (key, executor) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- version 6

-- Shares of one phase's time that a resource limited, each summing to 1; NULL where the run has none, or is older.
ALTER TABLE resource_use ADD COLUMN critical_prefill REAL;
ALTER TABLE resource_use ADD COLUMN critical_decode REAL;

-- As before; the pace of the prefill and that of the decode may be set by different resources.
DROP VIEW throughput;
CREATE VIEW throughput AS
SELECT
	r.key, r.model, r.quant, r.machine, r.engine, r.batch, r.prompt, r.generate, r.depth, r.fits,
	r.decode_tok_s,
	r.decode_tok_s_low80 AS low80,
	r.decode_tok_s_high80 AS high80,
	r.upper_bound_tok_s,
	u.resource AS limited_by, -- the largest share of the critical path of the whole run
	u.critical AS limited_share,
	(SELECT w.resource FROM resource_use AS w WHERE w.key = r.key AND w.critical_decode > 0
		ORDER BY w.critical_decode DESC, w.resource LIMIT 1) AS decode_limited_by,
	(SELECT w.resource FROM resource_use AS w WHERE w.key = r.key AND w.critical_prefill > 0
		ORDER BY w.critical_prefill DESC, w.resource LIMIT 1) AS prefill_limited_by
FROM run AS r
LEFT JOIN resource_use AS u ON u.key = r.key AND u.resource = (
	SELECT w.resource FROM resource_use AS w
	WHERE w.key = r.key AND w.critical > 0
	ORDER BY w.critical DESC, w.resource LIMIT 1
);
