package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/varve-db/varve/internal/errs"
)

// A read-only handle attaches to nothing and changes nothing. Where the shared
// page is of this boot and recovered, it follows its durable mark like everybody
// else; the mark holds also when the last writer has gone or was killed. Else,
// after a reboot or on media that cannot be written, it replays privately: what
// it reads then comes from the disk.

func (l *FileLog) openReadOnly(ctx context.Context) error {
	if _, err := l.o.FS.Stat(l.o.walDir()); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", l.o.Dir, errs.ErrNoStore)
		}
		return l.ioError("looking at", l.o.walDir(), err)
	}
	if p, err := l.o.FS.OpenShared(l.o.wal("shared"), false, l.o.FileMode); err == nil {
		l.shared = page{p}
		if l.shared.valid(l.host) {
			l.generation = l.shared.generation()
			return l.follow(ctx)
		}
	}
	return l.openPrivate(ctx)
}

// openPrivate replays without telling anybody.
func (l *FileLog) openPrivate(ctx context.Context) error {
	l.private = true
	c, fresh, err := l.whence()
	if err != nil {
		return err
	}
	if fresh {
		return fmt.Errorf("%s holds no segments: %w", l.o.walDir(), errs.ErrNoStore)
	}
	l.report.Recovered, l.report.Flushed, l.report.Mtimes = true, c.Flushed.LSN, c.Mtimes
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	if err := l.begin(ctx, c.Spilled, Start{}); err != nil {
		return err
	}
	end, err := l.replay(ctx, c.Attested, c.Attested)
	l.report.Clean = err == nil && end == c.Attested
	return err
}

// catchUpPrivate looks for frames behind the end found so far. Once somebody
// has recovered the log, it follows the page instead.
func (l *FileLog) catchUpPrivate() error {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	if l.shared.Shared != nil && l.shared.valid(l.host) && l.Damage() == nil {
		if durable := l.shared.durable(); durable >= l.state.w.at.LSN {
			l.private, l.generation = false, l.shared.generation()
			return l.readTo(durable, durable)
		}
	}
	return nil
}
