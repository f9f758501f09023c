-- name: append_audit
-- Append one line to each given chain, chained to the line before; the caller holds what serialises the chain.
-- A chain may be named once a call. UNIQUE (chain, seq) undoes a writer that did not hold its lock.
WITH said AS (
    SELECT chain, actor, action, decode(salt, 'hex') AS salt, detail
      FROM json_to_recordset(%(lines)s::json) AS given (chain text, actor text, action text, salt text, detail text)
), placed AS (
    SELECT said.*, coalesce(last.seq, 0) + 1 AS seq,
           coalesce(last.hash, decode(repeat('00', 32), 'hex')) AS previous,
           clock_timestamp() AS at,
           sha256(said.salt || convert_to(said.detail, 'UTF8')) AS detail_hash
      FROM said
      LEFT JOIN LATERAL (
           SELECT seq, hash FROM audit_log WHERE audit_log.chain = said.chain ORDER BY seq DESC LIMIT 1) AS last ON true
), written AS (
    INSERT INTO audit_log (chain, seq, at, actor, action, detail_hash, hash)
    SELECT chain, seq, at, actor, action, detail_hash,
           audit_hash(previous, chain, seq, at, actor, action, detail_hash)
      FROM placed
)
INSERT INTO audit_details (chain, seq, salt, detail) SELECT chain, seq, salt, detail FROM placed;

-- name: lock_system_chain
-- Serialise writers of the chain "system", which no run's lock covers; ends with the transaction.
SELECT pg_advisory_xact_lock(1467416577);

-- name: read_chain
-- One chain in order, with the details that are still there.
SELECT l.chain, l.seq, l.at, l.actor, l.action, l.detail_hash, l.hash, d.salt, d.detail
  FROM audit_log AS l
  LEFT JOIN audit_details AS d ON d.chain = l.chain AND d.seq = l.seq
 WHERE l.chain = %(chain)s
 ORDER BY l.seq;

-- name: list_chains
-- The next chains after the given one, for a walk over all of them.
SELECT DISTINCT chain FROM audit_log WHERE chain > %(after)s ORDER BY chain LIMIT %(most)s;
