package wal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// A reader that has followed a log learns why the log has ended, after the store was opened again: when wal/ was
// lost, when the store was restored, and when wal/ended, which records the reason, is damaged. A store that is merely
// opened again, even after a kill, continues its log.
func TestBrokenByOpen(t *testing.T) {
	t.Parallel()
	above := func(n uint64) func(*Options) {
		return func(o *Options) { o.NewAbove = func() (LSN, error) { return n, nil } }
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string, l *FileLog)
		want   past.Reason
		none   bool
	}{
		"opened": {change: func(*testing.T, string, *FileLog) {}, none: true},
		"files lost": {want: past.FilesLost, change: func(t *testing.T, dir string, _ *FileLog) {
			if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
				t.Fatal(err)
			}
		}},
		"files and checkpoint lost": {want: past.FilesLost, change: func(t *testing.T, dir string, _ *FileLog) {
			if err := errors.Join(os.RemoveAll(filepath.Join(dir, "wal")), os.Remove(filepath.Join(dir,
				"checkpoint"))); err != nil {
				t.Fatal(err)
			}
		}},
		"restored": {want: past.Restored, change: func(t *testing.T, dir string, l *FileLog) {
			err := errors.Join(os.RemoveAll(filepath.Join(dir, "wal")), os.Remove(filepath.Join(dir, "checkpoint")))
			if err == nil {
				err = BeginAbove(l.o.FS, dir, 1<<40, l.geo, 0, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		"record damaged": {want: past.RecordLost, change: func(t *testing.T, dir string, _ *FileLog) {
			if err := os.WriteFile(filepath.Join(dir, "wal", past.EndedName), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, _ := open(t, dir)
			fill(t, l, 3)
			var s shipped
			s.begin(t, l)
			if err := s.ship(l.Past(), l.Durable()); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			c.change(t, dir, l)
			for range 2 { // it is durable
				var err error
				if l, err = Open(t.Context(), (func() Options {
					o := (&model{}).options(dir)
					above(s.at.LSN)(&o)
					return o
				})()); err != nil {
					t.Fatal(err)
				}
				fill(t, l, l.geo.Number(l.Durable())+1)
				err = l.Past().Continues(t.Context(), s.id, s.at)
				var ended, piece *past.EndedError
				if c.none != (err == nil) || !c.none && (!errors.As(err, &ended) || ended.Reason != c.want) {
					t.Errorf("continues: %v, want %v", err, c.want)
				}
				now := s
				now.bytes = map[uint64][]byte{}
				for n, b := range s.bytes {
					now.bytes[n] = b
				}
				if c.want == past.RecordLost {
					c.none = true // the log itself is the same: its pieces are valid
				}
				err = now.ship(l.Past(), l.Durable())
				if c.none != (err == nil) || !c.none && (!errors.As(err, &piece) || piece.Reason != c.want ||
					!errors.Is(err, past.ErrBegunAgain)) {
					t.Errorf("pieces: %v, want %v", err, c.want)
				}
				if c.want == past.RecordLost {
					c.none = false
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// The first log of a store has ended no other, and leaves no record.
func TestFirstLogEndsNone(t *testing.T) {
	t.Parallel()
	l, dir := openIn(t)
	id, err := l.Past().ID()
	if err != nil || id.Epoch != 0 || id.Store != l.UUID() {
		t.Error(id, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "wal", past.EndedName)); err == nil {
		t.Error("a new store has a record of ended logs")
	}
	if l.geo.Start(1)+segment.StartSize != l.Durable() {
		t.Error(l.Durable())
	}
}
