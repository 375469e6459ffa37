package repairs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/segment"
)

// lastFrame returns the position of the newest frame of a log, and the frame.
func lastFrame(t *testing.T, dir string) (name string, g segment.Geometry, h segment.Header) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "wal", "0*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		s, first, err := segment.ParseStart(b)
		if err != nil {
			continue // not begun
		}
		name, g, h = n, s.Geometry, first
		for g.Offset(h.End()) > 0 {
			next, err := g.ParseHeader(b[g.Offset(h.End()):], h.End())
			if err != nil || next.Previous != h.Sum {
				break
			}
			h = next
		}
	}
	return name, g, h
}

// A store of which any part has a newer format is refused by every process; the error says what to do,
// and the store is not changed.
func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	open := func(dir string, o varve.Options) error {
		st, err := varve.Open(ctx, dir, &o)
		if err == nil {
			err = st.Close()
		}
		return err
	}
	uses := map[string]func(dir string) error{
		"opened":    func(dir string) error { return open(dir, varve.Options{}) },
		"read-only": func(dir string) error { return open(dir, varve.Options{ReadOnly: true}) },
		"moved": func(dir string) error {
			_, err := varve.Migrate(ctx, dir, filepath.Join(t.TempDir(), "to"), &varve.MigrateOptions{Switch: true})
			return err
		},
		"repaired": func(dir string) error {
			plan, err := varve.PlanRepair(ctx, dir, nil, varve.VerifyOptions{})
			if err == nil {
				_, err = plan.Apply(ctx)
			}
			return err
		},
		"verified": func(dir string) error {
			for _, err := range varve.VerifyFolder(ctx, dir, nil, varve.VerifyOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	for what, raise := range map[string]struct {
		of string
		do func(t *testing.T, dir string)
	}{
		"config": {"closed", func(t *testing.T, dir string) {
			storetest.Rewrite(t, filepath.Join(dir, "config.json"), func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"varve": 1`), []byte(`"varve": 2`), 1)
			})
		}},
		"checkpoint": {"closed", func(t *testing.T, dir string) {
			storetest.Rewrite(t, filepath.Join(dir, "checkpoint"), func(b []byte) []byte {
				for slot := b; len(slot) >= 4096; slot = slot[4096:] {
					if string(slot[:8]) == "VARVECHK" {
						binary.LittleEndian.PutUint32(slot[8:], 3)
						binary.LittleEndian.PutUint64(slot[136:], xxhash.Sum64(slot[:136]))
					}
				}
				return b
			})
		}},
		"segment": {"closed", func(t *testing.T, dir string) {
			name, _, _ := lastFrame(t, dir)
			storetest.Rewrite(t, name, func(b []byte) []byte {
				s, h, err := segment.ParseStart(b)
				if err != nil {
					t.Fatal(err)
				}
				p := bytes.Clone(b[segment.HeaderSize:segment.StartSize])
				binary.LittleEndian.PutUint32(p[8:], segment.Version+1)
				return append(s.AppendFrame(nil, &h, "", p), b[segment.StartSize:]...)
			})
		}},
		"index": {"closed", func(t *testing.T, dir string) {
			storetest.Rewrite(t, filepath.Join(dir, "memory_index.json"), fixture.RaiseTable)
		}},
		"delta": {"closed", func(t *testing.T, dir string) {
			storetest.Rewrite(t, filepath.Join(dir, "memory_index.delta.json"), fixture.RaiseTable)
		}},
		"record": {"killed", func(t *testing.T, dir string) {
			name, g, h := lastFrame(t, dir)
			storetest.Rewrite(t, name, func(b []byte) []byte {
				frame := b[g.Offset(h.LSN):]
				key, value, err := h.Check(frame[segment.HeaderSize:][:h.Length])
				if err != nil {
					t.Fatal(err)
				}
				value = bytes.Clone(value)
				value[0]++
				copy(frame, g.AppendFrame(nil, &h, string(key), value))
				return b
			})
		}},
	} {
		for how, use := range uses {
			t.Run(what+" "+how, func(t *testing.T) {
				dir := fixture.Unpack(t, filepath.Join(fixture.GoldenRoot, "v1", raise.of))
				raise.do(t, dir)
				before := fixture.Snapshot(t, dir)
				err := use(dir)
				if !errors.Is(err, varve.ErrNewerFormat) {
					t.Errorf("%v", err)
				} else if !strings.Contains(err.Error(), varve.ErrNewerFormat.Error()) || errors.Is(err, varve.ErrCorrupt) {
					t.Errorf("it does not say what it is: %v", err)
				}
				after := fixture.Snapshot(t, dir)
				if !maps.Equal(before, after) {
					for name := range before {
						if before[name] != after[name] {
							t.Errorf("%s was changed", name)
						}
					}
					for name := range after {
						if _, ok := before[name]; !ok {
							t.Errorf("%s was made", name)
						}
					}
				}
			})
		}
	}
}
