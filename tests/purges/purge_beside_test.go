package purges

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// While a purge is running, in any process, background rounds leave flush.lock to it, until the writers
// would be slowed down; and no longer than its process lives.
func TestPurgeIsLeftTheLock(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	options := func() *varve.Options {
		return &varve.Options{NoBackground: true, Clock: func() time.Time { return now }, LockWait: time.Minute}
	}
	one, two := fixture.Open(t, dir, options()), fixture.Open(t, dir, options())
	if storetest.Inner(two).Engine.Env().FS.Host().Birth == 0 {
		t.Skip("processes cannot be told apart here: mount the /proc of this namespace")
	}
	c := one.Admin().Config()
	c.BacklogBytes = 1 << 20
	if err := one.Admin().SetConfig(c); err != nil {
		t.Fatal(err)
	}
	put := func(id, content string) {
		if _, err := one.Put(t.Context(), varve.Memory{ID: id, Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	behind := func() bool {
		return storetest.Inner(one).Engine.Log().Flushed() < storetest.Inner(one).Engine.Log().Durable()
	}
	put("a", "x")
	if err := storetest.Inner(two).Engine.Log().Purges().Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rest, did := storetest.Inner(one).Flusher.FlushBackground(t.Context()); !did || rest == 0 || !behind() {
		t.Errorf("a round beside a purge: rests %v, %v, behind: %v", rest, did, behind())
	}
	for i := 0; storetest.Inner(one).Engine.Log().Pace().Unfiled() < 600<<10; i++ {
		put(fmt.Sprint("b", i), strings.Repeat("y", 10_000))
	}
	if _, did := storetest.Inner(one).Flusher.FlushBackground(t.Context()); !did || behind() {
		t.Errorf("a round beside a purge when writers are to be slowed: %v, behind: %v", did, behind())
	}
	put("c", "x")
	if err := one.Flush(t.Context()); err != nil || behind() {
		t.Errorf("a flush that somebody asked for: %v, behind: %v", err, behind())
	}
	put("d", "x")
	if _, did := storetest.Inner(one).Flusher.FlushBackground(t.Context()); !did || !behind() {
		t.Errorf("a round beside a purge: %v, behind: %v", did, behind())
	}
	now = now.Add(time.Minute)
	if _, did := storetest.Inner(one).Flusher.FlushBackground(t.Context()); !did || behind() {
		t.Errorf("a round beside a purge that does not end: %v, behind: %v", did, behind())
	}
	storetest.Inner(two).Engine.Log().Purges().End()
	if err := storetest.Inner(two).Engine.Log().Purges().Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	put("e", "x")
	storetest.Inner(two).Engine.Log().Purges().End()
	if _, did := storetest.Inner(one).Flusher.FlushBackground(t.Context()); !did || behind() {
		t.Errorf("a round after the purge: %v, behind: %v", did, behind())
	}
}
