package wal

import (
	"context"
	"slices"
	"testing"
	"time"
)

// If a segment is prepared slowly while the tail passes it and the log is released beyond it, it is not created
// below the first segment of the log.
func TestPrepareTooLate(t *testing.T) {
	t.Parallel()
	var l *FileLog
	passed := false
	l, _ = open(t, t.TempDir(), func(o *Options) {
		o.Sleep = func(context.Context, time.Duration) error {
			if !passed {
				passed = true
				fill(t, l, 6)
				let(t, l)
			}
			return nil
		}
		o.Inline = true // nothing else prepares
	})
	defer l.Close()
	fill(t, l, 2)
	if err := l.prepareNext(t.Context(), 4); err != nil || !passed {
		t.Fatalf("prepared: %v, %v", passed, err)
	}
	numbers, err := l.numbers()
	if err != nil || numbers[0] != 6 {
		t.Errorf("the segments are %d, %v", numbers, err)
	}
	names, err := l.o.FS.ReadDir(l.o.walDir())
	if err != nil || slices.ContainsFunc(names, func(n string) bool { return len(n) > 4 && n[len(n)-4:] == ".new" }) {
		t.Errorf("left in wal/: %q, %v", names, err)
	}
	if err := l.prepareNext(t.Context(), 8); err != nil {
		t.Fatal(err)
	}
	if numbers, err = l.numbers(); err != nil || !slices.Contains(numbers, 8) {
		t.Errorf("what is ahead of the tail is not prepared: %d, %v", numbers, err)
	}
}
