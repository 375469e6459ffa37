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

// A read-only handle attaches to nothing and changes nothing. Where the shared
// page is of this boot and recovered, it follows its durable mark like everybody
// else; the mark holds also when the last writer has gone or was killed. Else,
// after a reboot or on media that cannot be written, it replays privately: what
// it reads then comes from the disk. Whenever the page's generation is another
// than the one it follows, it starts again from the newest views.

func (l *FileLog) openReadOnly(ctx context.Context) error {
	if _, err := l.o.FS.Stat(l.o.walDir()); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", l.o.Dir, errs.ErrNoStore)
		}
		return l.ioError("looking at", l.o.walDir(), err)
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
		// The log is damaged: what can be read of it is served, as after a reboot.
	}
	return l.openPrivate(ctx)
}

// mapPage maps the shared page if there is one.
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
			_ = p.Close() // a copy of another store's
			return false
		}
		l.shared = p
	}
	return true
}

// openPrivate replays without telling anybody.
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
		return fmt.Errorf("%s holds no segments: %w", l.o.walDir(), errs.ErrNoStore)
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

// pageEvery is how often a handle that replayed privately looks for the page at most.
const pageEvery = 50 * time.Millisecond

// watchPage looks whether the page that this handle follows is still the one,
// or whether there is one by now.
func (l *FileLog) watchPage(ctx context.Context) error {
	private := l.private.Load()
	if !private && (l.stillOurs() == nil || l.shared.Cut()) || l.Damage() != nil {
		return nil // of a page that was cut short, what is known still holds
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
		return nil // being recovered, or nobody has: what is known still holds
	}
	l.generation.Store(l.shared.Generation())
	if err := l.restart(ctx); err != nil {
		if private && errors.Is(err, errs.ErrCorrupt) {
			return nil // what made this handle private in the first place
		}
		return err
	}
	l.private.Store(false)
	durable := l.shared.Durable()
	return l.advance(ctx, durable, durable)
}
