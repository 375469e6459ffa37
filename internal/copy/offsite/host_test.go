package offsite

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/sender"
)

// TestPauseGrows verifies that a place that cannot be reached for a moment when a process begins to send is tried again
// after seconds, not after a minute.
func TestPauseGrows(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "store", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	places := &Places{FS: vfs.OS(), State: filepath.Join(dir, "state"), Dir: filepath.Join(dir, "store"),
		Store: uuid.New()}
	if err := places.Save(Place{URL: "file:///copy"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var pauses []time.Duration // before each attempt
	slept := time.Duration(0)
	h := NewHost(HostConfig{Places: places, Logger: slog.New(slog.DiscardHandler), Changed: func(error) {},
		Sender: sender.Options{Clock: time.Now, Sleep: func(ctx context.Context, d time.Duration) error {
			slept += d
			return ctx.Err()
		}},
		Open: func(context.Context, string) (remote.Remote, error) {
			if pauses = append(pauses, slept); len(pauses) == 8 {
				cancel()
			}
			slept = 0
			return nil, errors.New("the disk is away")
		}})
	h.Run(ctx)
	const s = time.Second
	if want := []time.Duration{0, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s}; !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, not %v", pauses, want)
	}
}
