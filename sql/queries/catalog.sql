-- name: list_tables
-- Every table of ours in the order of its making, with what it is for.
SELECT c.relname AS name, 'CREATE TABLE ' || c.relname || ' (' AS opening, obj_description(c.oid, 'pg_class') AS says
  FROM pg_class AS c
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
 ORDER BY c.oid;

-- name: list_columns
-- Every column in its place; default_of holds the default, or the expression of a generated column; is_counted: the next
-- number of a sequence of its own, always.
SELECT c.relname AS table_name, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type_name,
       a.attnotnull AS is_required, a.attgenerated <> '' AS is_generated, a.attidentity <> '' AS is_counted,
       pg_get_expr(d.adbin, d.adrelid) AS default_of,
       col_description(c.oid, a.attnum) AS says
  FROM pg_class AS c
  JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
 ORDER BY c.oid, a.attnum;

-- name: list_constraints
-- Every named rule of a table: primary key, unique, foreign, check. NOT NULL stands with its column: servers from 18 on
-- list it here too.
SELECT c.relname AS table_name, k.conname AS name, pg_get_constraintdef(k.oid, true) AS definition
  FROM pg_class AS c
  JOIN pg_constraint AS k ON k.conrelid = c.oid AND k.contype IN ('p', 'u', 'f', 'c')
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
 ORDER BY c.oid, strpos('pufc', k.contype::text), k.conname;

-- name: list_indexes
-- Every index that no constraint brings along.
SELECT c.relname AS table_name, pg_get_indexdef(i.indexrelid, 0, true) AS definition
  FROM pg_index AS i
  JOIN pg_class AS c ON c.oid = i.indrelid
  JOIN pg_class AS x ON x.oid = i.indexrelid
 WHERE c.relnamespace = 'public'::regnamespace
   AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u'))
 ORDER BY x.relname;

-- name: list_triggers
-- Every trigger of ours; always_on says what lets it fire in every mode, where it does.
SELECT c.relname AS table_name, pg_get_triggerdef(t.oid, true) AS definition,
       CASE t.tgenabled WHEN 'A' THEN 'ALTER TABLE ' || c.relname || ' ENABLE ALWAYS TRIGGER ' || t.tgname END AS always_on
  FROM pg_trigger AS t
  JOIN pg_class AS c ON c.oid = t.tgrelid
 WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal
 ORDER BY t.tgname;

-- name: list_functions
-- Every function of ours.
SELECT p.proname AS name, pg_get_functiondef(p.oid) AS definition
  FROM pg_proc AS p
 WHERE p.pronamespace = 'public'::regnamespace
 ORDER BY p.proname;

-- name: list_grants
-- What the restricted role may do with each table.
SELECT c.relname AS table_name, string_agg(acl.privilege_type, ', ' ORDER BY acl.privilege_type) AS privileges
  FROM pg_class AS c
 CROSS JOIN LATERAL aclexplode(c.relacl) AS acl
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND acl.grantee = 'stet_app'::regrole
 GROUP BY c.oid, c.relname
 ORDER BY c.oid;
