package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
)

const (
	schemaVersion = 1
	oldestServer  = 120000 // server_version_num
)

// tables has the SQL statements that create the tables of a schema. SCHEMA stands for the name of the schema.
const tables = `
CREATE TABLE SCHEMA.remote (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	version bigint NOT NULL,
	id uuid NOT NULL,
	number bigint NOT NULL,
	epoch bigint NOT NULL,
	floor bigint NOT NULL
);
CREATE TABLE SCHEMA.entries (
	number bigint PRIMARY KEY,
	kind smallint NOT NULL,
	epoch bigint NOT NULL,
	store uuid NOT NULL,
	segment bigint NOT NULL,
	log bigint NOT NULL,
	from_lsn bigint NOT NULL,
	from_sum bigint NOT NULL,
	to_lsn bigint NOT NULL,
	to_sum bigint NOT NULL,
	machine uuid NOT NULL,
	request uuid NOT NULL,
	format bigint NOT NULL,
	time timestamptz NOT NULL,
	size bigint NOT NULL,
	sha256 bytea NOT NULL,
	digest bytea NOT NULL,
	bytes bytea NOT NULL
);
CREATE UNIQUE INDEX pieces ON SCHEMA.entries (epoch, from_lsn) WHERE kind = 1;
CREATE INDEX ends ON SCHEMA.entries (epoch, to_lsn);
CREATE TABLE SCHEMA.snapshots (
	id uuid PRIMARY KEY,
	complete boolean NOT NULL,
	began timestamptz NOT NULL,
	store uuid, segment bigint, log bigint, epoch bigint,
	begin_lsn bigint, begin_sum bigint, end_lsn bigint, end_sum bigint,
	machine uuid, format bigint, time timestamptz, size bigint, sha256 bytea, digest bytea
);
CREATE TABLE SCHEMA.parts (
	snapshot uuid NOT NULL REFERENCES SCHEMA.snapshots ON DELETE CASCADE,
	number bigint NOT NULL,
	stored timestamptz NOT NULL,
	bytes bytea NOT NULL,
	PRIMARY KEY (snapshot, number)
);
ALTER TABLE SCHEMA.parts ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE SCHEMA.machines (
	id uuid PRIMARY KEY,
	name text NOT NULL,
	seen timestamptz NOT NULL
);
`

// Create makes a schema a remote and opens it. If the schema is a remote already, Create only opens it. The database
// must exist. If the schema does not exist, Create creates the schema. An existing schema must have no tables.
func Create(ctx context.Context, o Options) (*Remote, error) {
	r, err := connect(o)
	if err != nil {
		return nil, err
	}
	if err := r.suitable(ctx); err != nil {
		return nil, r.closeWith(err)
	}
	id, err := uuid.NewRandomFromReader(r.o.Random)
	if err == nil {
		err = r.create(ctx, id)
	}
	_ = r.Close()
	if err != nil {
		return nil, err
	}
	return Open(ctx, o)
}

// create creates the tables of a remote with the given ID, and the schema if it does not exist. It does nothing if the
// schema has a remote already. If the schema has other tables, the error matches errs.ErrInvalid.
func (r *Remote) create(ctx context.Context, id uuid.UUID) error {
	name := fnv.New64a()
	name.Write([]byte("varve " + r.schema))
	turn := fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", int64(name.Sum64()))
	return r.run(ctx, "creating", turn, func(ctx context.Context, c *pgx.Conn, _ [][]byte) error {
		var there, is bool
		var other *string
		err := c.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL, to_regclass($2) IS NOT NULL, (SELECT "+
			"min(relname::text) FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r','p','v','m','f'))",
			r.schema, r.schema+".remote").Scan(&there, &is, &other)
		switch {
		case err != nil || is:
			return err
		case other != nil:
			return fmt.Errorf("%s: %w: the schema has other tables (%s) -> name another schema", r.Place(),
				errs.ErrInvalid, *other)
		}
		text := strings.ReplaceAll(tables, "SCHEMA", r.schema)
		if !there {
			text = "CREATE SCHEMA " + r.schema + ";" + text
		}
		if _, err := c.PgConn().Exec(ctx, text).ReadAll(); err != nil {
			return err
		}
		_, err = c.Exec(ctx, "INSERT INTO "+r.schema+".remote VALUES (true, $1, $2, 0, 0, 0)", int64(schemaVersion),
			asUUID(id))
		return err
	})
}

// suitable returns an error that matches remote.ErrUnsuitable if the server is older than PostgreSQL 12 or does not
// sync (fsync is off).
func (r *Remote) suitable(ctx context.Context) error {
	const query = "SELECT current_setting('server_version_num'), current_setting('fsync')"
	return r.run(ctx, "opening", query, func(_ context.Context, _ *pgx.Conn, row [][]byte) error {
		if len(row) != 2 {
			return errors.New("the server does not report its version")
		}
		version, err := strconv.Atoi(string(row[0]))
		switch {
		case err != nil || version < oldestServer:
			return fmt.Errorf("%s is %w: the version of the server is %s -> use PostgreSQL 12 or newer", r.Place(),
				remote.ErrUnsuitable, row[0])
		case string(row[1]) != "on":
			return fmt.Errorf("%s is %w: the server loses committed data in a power cut (fsync is %s) -> set fsync = on",
				r.Place(), remote.ErrUnsuitable, row[1])
		}
		return nil
	})
}
