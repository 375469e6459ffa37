package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-db/varve/remote"
)

// Register records a machine; see remote.Remote.
func (r *Remote) Register(ctx context.Context, m remote.Machine) error {
	name := strings.ReplaceAll(strings.ToValidUTF8(m.Name, "\uFFFD"), "\x00", "\uFFFD")
	return r.transact(ctx, "writing", noLock, func(ctx context.Context, c *pgx.Conn, _ *state) error {
		_, err := c.Exec(ctx, "INSERT INTO "+r.schema+".machines VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET "+
			"name = excluded.name, seen = excluded.seen", asUUID(m.ID), name, m.Seen.Truncate(time.Microsecond))
		return err
	})
}

// Machines returns the recorded machines; see remote.Remote.
func (r *Remote) Machines(ctx context.Context) (all []remote.Machine, err error) {
	err = r.transact(ctx, "reading", noLock, func(ctx context.Context, c *pgx.Conn, _ *state) error {
		all = nil
		rows, err := c.Query(ctx, "SELECT id, name, seen FROM "+r.schema+".machines ORDER BY id")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var m remote.Machine
			if err := rows.Scan((*[16]byte)(&m.ID), &m.Name, &m.Seen); err != nil {
				return err
			}
			m.Seen = m.Seen.UTC()
			all = append(all, m)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
