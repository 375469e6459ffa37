package offsite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/remote"
)

// cancelling counts the operations on files and the calls of a place, and cancels a context at one of them.
type cancelling struct {
	ops, at atomic.Int64
	cancel  atomic.Pointer[context.CancelFunc]
}

func (c *cancelling) count() {
	if c.ops.Add(1) == c.at.Load() {
		(*c.cancel.Load())()
	}
}

// until calls f with a context that is cancelled at an operation of f, for about each step-th operation, until f ends
// before it. The steps grow, because f may have more operations at each call. check is called after each call.
func (c *cancelling) until(t *testing.T, step int64, f func(context.Context) error, check func(at int64, err error)) {
	t.Helper()
	cancelled := 0
	for at := int64(1); ; at += step + at/20 {
		ctx, cancel := context.WithCancel(t.Context())
		c.cancel.Store(&cancel)
		c.ops.Store(0)
		c.at.Store(at)
		err := f(ctx)
		cancel()
		ended := c.ops.Load() < at
		c.at.Store(0)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled at operation %d: %v", at, err)
		}
		if err != nil {
			cancelled++
		}
		check(at, err)
		if ended {
			break
		}
	}
	t.Logf("%d calls were cancelled", cancelled)
	if cancelled == 0 {
		t.Error("no call was cancelled")
	}
}

// TestCancelledAnywhere: at whatever operation on a file or call of the place a context ends, sending, purging, taking
// and cloning return its error or are done. The same call succeeds afterwards, nothing is lost, and a clone that was
// cancelled leaves no folder.
func TestCancelledAnywhere(t *testing.T) {
	step := int64(max(7, proofs.Every(11)))
	for name, test := range map[string]func(t *testing.T, d *diary, c *cancelling, r remote.Remote, o *varve.Options){
		"send": func(t *testing.T, d *diary, c *cancelling, r remote.Remote, _ *varve.Options) {
			n := 0
			c.until(t, step, func(ctx context.Context) error {
				n++
				d.put(fmt.Sprintf("n%d", n%5), fmt.Sprintf("text %d", n))
				d.now.Add(25) // a snapshot is due
				return d.st.Admin().Offsite().Send(ctx, r)
			}, func(int64, error) {})
			d.send()
		},
		"purge": func(t *testing.T, d *diary, c *cancelling, r remote.Remote, _ *varve.Options) {
			c.until(t, step, func(ctx context.Context) error {
				d.put("late", text)
				d.purge("late")
				return d.st.Admin().Offsite().PurgeNow(ctx, r)
			}, func(at int64, err error) {
				if pending := d.state().Pending; pending != (err != nil) {
					t.Errorf("cancelled at operation %d: pending %v, %v", at, pending, err)
				}
			})
			d.purge("secret")
			d.purgeNow()
			if d.has(filepath.Join(d.dir, "remote")) {
				t.Error("the copy has what was purged")
			}
		},
		"take": func(t *testing.T, d *diary, c *cancelling, r remote.Remote, o *varve.Options) {
			d.check(d.st.Close())
			store := filepath.Join(d.dir, "store")
			c.until(t, step, func(ctx context.Context) error {
				return varve.Take(ctx, store, r, d.url, false, o)
			}, func(int64, error) {})
			d.check(varve.Take(t.Context(), store, d.remote, d.url, false, d.o))
			d.open()
			d.put("a", "afterwards")
			d.send()
		},
		"clone": func(t *testing.T, d *diary, c *cancelling, r remote.Remote, o *varve.Options) {
			for _, fork := range []bool{false, true} {
				to := filepath.Join(d.dir, "cloned")
				c.until(t, step, func(ctx context.Context) error {
					_, err := varve.Clone(ctx, r, to, &varve.CloneOptions{Fork: fork, Options: o})
					return err
				}, func(at int64, err error) {
					if _, serr := os.Stat(to); errors.Is(serr, os.ErrNotExist) != (err != nil) {
						t.Errorf("fork %v, cancelled at operation %d: %v, the folder: %v", fork, at, err, serr)
					}
					d.check(os.RemoveAll(to))
				})
			}
			if left, err := filepath.Glob(filepath.Join(d.dir, "cloned*")); err != nil || len(left) > 0 {
				t.Error(left, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, c := newDiary(t, false), &cancelling{}
			d.check(d.st.Close())
			was := d.o
			o := *d.o
			d.o = storetest.In(&o, storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(),
				func(_ *wrap.Op, call func() error) error {
					c.count()
					return call()
				})}})
			d.open()
			r := &failing{d.remote, func(call func() error) error {
				c.count()
				return call()
			}}
			test(t, d, c, r, d.o)
			d.o = was
			d.check(d.st.Flush(t.Context()))
			d.check(d.st.Close())
			v, err := remote.Verify(t.Context(), d.remote, true)
			if err != nil || len(v.Damage) > 0 || !v.Restorable {
				t.Errorf("%+v, %v", v, err)
			}
			to := filepath.Join(d.dir, "clone")
			_, err = varve.Clone(t.Context(), d.remote, to, &varve.CloneOptions{Options: d.o})
			d.check(err)
			storetest.SameTexts(t, "documents", files(t, to), files(t, filepath.Join(d.dir, "store")))
		})
	}
}
