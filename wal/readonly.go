package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/wal/page"
)

// openReadOnly opens a read-only handle, which takes no lock and changes nothing. If the shared page records that the
// log was recovered in this boot, the handle reads the log up to the durable position in the page, like all other
// processes; the position is valid even if no process has the log open any more. Otherwise, for example after a reboot
// or on a read-only medium, the handle replays the log by itself. When the generation of the page changes, the handle
// starts again from the newest views.
func (l *FileLog) openReadOnly(ctx context.Context) error {
	if _, err := l.o.FS.Stat(l.o.walDir()); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", l.o.Dir, errs.ErrNoStore)
		}
		return l.ioError("checking", l.o.walDir(), err)
	}
	if err := l.strays(); err != nil {
		return err
	}
	if l.mapPage() && l.shared.Valid(l.host) && l.shared.Poison() != page.Damaged {
		l.generation.Store(l.shared.Generation())
		err := l.follow(ctx)
		if !errors.Is(err, errs.ErrCorrupt) {
			return err
		}
		// The log is damaged: the readable part is served, as after a reboot.
	}
	return l.openPrivate(ctx)
}

// mapPage maps the page in wal/shared, if it is not mapped yet, and reports whether this handle has a mapped page that
// belongs to this store.
func (l *FileLog) mapPage() bool {
	if l.report.Linked != nil {
		return false
	}
	if !l.shared.Mapped() {
		words, err := l.o.FS.OpenShared(l.o.wal("shared"), false, l.o.FileMode)
		if err != nil {
			return false
		}
		p := page.New(words)
		info, err := l.o.FS.Stat(l.o.wal("shared"))
		if err != nil || p.Inode() != info.Ino {
			_ = p.Close() // a copy of another store's page
			return false
		}
		l.shared = p
	}
	return true
}

// openPrivate replays the log for this process alone. The handle then does not follow the positions in wal/shared.
func (l *FileLog) openPrivate(ctx context.Context) error {
	l.private.Store(true)
	c, fresh, err := l.origin()
	if err != nil {
		return err
	}
	if err := l.admit(l.required); err != nil {
		return err
	}
	if fresh {
		return fmt.Errorf("%s has no segments of a log: %w", l.o.walDir(), errs.ErrNoStore)
	}
	l.report.Recovered, l.report.Flushed, l.report.Mtimes = true, c.Flushed.LSN, c.Mtimes
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	if err := l.begin(ctx, c.Spilled, Start{}); err != nil {
		return err
	}
	attested := max(c.Attested.LSN, l.unmarked)
	if l.shared.Mapped() && l.shared.OfBoot(l.host) {
		attested = max(attested, l.shared.Durable())
	}
	end, damage, err := l.replay(ctx, attested, c.Attested)
	if damage != nil {
		l.damage.Store(damage)
		l.report.Damage = damage
	}
	l.report.Clean = err == nil && end == c.Attested && end.LSN == c.Flushed.LSN
	return err
}

// pageEvery is the minimum interval at which a private handle (see openPrivate) checks whether the file wal/shared
// exists.
const pageEvery = 50 * time.Millisecond

// watchPage checks whether the shared page that this handle follows is still valid. A private handle, which follows no
// page, checks whether a valid page exists now. If the page is new or has another generation, the handle starts again
// from the newest views and follows this page.
func (l *FileLog) watchPage(ctx context.Context) error {
	private := l.private.Load()
	if !private && (l.stillOurs() == nil || l.shared.Cut()) || l.Damage() != nil {
		return nil // if the page was cut short, what is known stays valid
	}
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	if private {
		now := l.o.Clock()
		if !l.shared.Mapped() && now.Sub(l.looked) < pageEvery && !now.Before(l.looked) {
			return nil
		}
		l.looked = now
	}
	if !l.mapPage() || !l.shared.Valid(l.host) {
		return nil // a recovery is running or still missing: what is known stays valid
	}
	l.generation.Store(l.shared.Generation())
	if err := l.restart(ctx); err != nil {
		if private && errors.Is(err, errs.ErrCorrupt) {
			return nil // the reason why this handle is private
		}
		return err
	}
	l.private.Store(false)
	durable := l.shared.Durable()
	return l.advance(ctx, durable, durable)
}
