package redis_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve/working"
	"github.com/varve-db/varve/working/redis"
)

var scope = working.Scope{Session: "s"}

func attach(t testing.TB, h working.Home) *working.Memory {
	t.Helper()
	m, err := working.Open(t.Context(), h, scope, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fails(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want one that matches %v", err, want)
	}
}

func has(t testing.TB, m *working.Memory, key string, want any) {
	t.Helper()
	v, found, err := m.Get(t.Context(), key)
	if err != nil || !found || v != want {
		t.Errorf("%s is %v, %v, %v; want %v", key, v, found, err, want)
	}
}

func lacks(t testing.TB, m *working.Memory, key string) {
	t.Helper()
	if v, found, err := m.Get(t.Context(), key); err != nil || found {
		t.Errorf("%s is %v, %v, %v; want nothing", key, v, found, err)
	}
}

func TestWrongPassword(t *testing.T) {
	s := start(t, "--requirepass", "secret", "--user", "reader", "on", ">pw", "~*", "-@all", "+ping")
	for url, fallback := range map[string]bool{
		fmt.Sprintf("redis://:wrong@%s", s.addr()): true, fmt.Sprintf("redis://%s", s.addr()): false, fmt.Sprintf("redis://nobody:wrong@%s", s.addr()): false,
	} {
		_, err := redis.Open(t.Context(), redis.Options{URL: url, Fallback: fallback})
		fails(t, err, working.ErrPermission)
		var e *redis.Error
		if !errors.As(err, &e) || strings.Contains(fmt.Sprint(err), "wrong@") {
			t.Errorf("%v", err)
		}
	}
	h := open(t, redis.Options{URL: fmt.Sprintf("redis://:secret@%s", s.addr())})
	ok(t, attach(t, h).Set(t.Context(), "k", 1))
	may := open(t, redis.Options{URL: fmt.Sprintf("redis://reader:pw@%s", s.addr()), Fallback: true})
	_, err := working.Open(t.Context(), may, scope, nil)
	fails(t, err, working.ErrPermission)
	if may.UsingFallback() {
		t.Error("falls back because of a user who may not")
	}
}

// The user in the package comment may do everything that a home does.
func TestACLUser(t *testing.T) {
	s := start(t, append([]string{"--user", "agent", "on", ">pw"}, strings.Fields(redis.ACL("wm:"))...)...)
	h := open(t, redis.Options{URL: fmt.Sprintf("redis://agent:pw@%s", s.addr())})
	m := attach(t, h)
	ok(t, m.Set(t.Context(), "k", 1, working.Expires(time.Hour)))
	_, err := m.Increment(t.Context(), "k", 1)
	ok(t, err)
	_, err = m.Append(t.Context(), "x")
	ok(t, err)
	cp, err := m.Checkpoint(t.Context(), "")
	ok(t, err)
	_, err = m.Restore(t.Context(), cp.ID)
	ok(t, err)
	_, err = m.DeleteCheckpoint(t.Context(), cp.ID)
	ok(t, err)
	_, err = m.Stats(t.Context())
	ok(t, err)
	_, err = m.Notes(t.Context(), -1)
	ok(t, err)
	_, err = m.Snapshot(t.Context())
	ok(t, err)
	for _, err := range h.Scopes(t.Context()) {
		ok(t, err)
	}
	_, err = m.Drop(t.Context())
	ok(t, err)
	other := open(t, redis.Options{URL: fmt.Sprintf("redis://agent:pw@%s", s.addr()), Prefix: "other:"})
	_, err = working.Open(t.Context(), other, scope, nil)
	fails(t, err, working.ErrPermission)
}

func TestOptions(t *testing.T) {
	for _, o := range []redis.Options{{}, {URL: "http://x"}, {URL: "redis://:secret@%zz"}, {URL: "redis://x/notanumber"}, {URL: "redis://x?no_such=1"},
		{URL: "redis://x", Prefix: "{"}, {URL: "redis://x", RetryAfter: -1}} {
		_, err := redis.Open(t.Context(), o)
		fails(t, err, working.ErrInvalid)
		fails(t, o.Validate(), working.ErrInvalid)
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("the password is in the message: %v", err)
		}
	}
	ok(t, (&redis.Options{URL: "rediss://user:pw@host:6380/2?dial_timeout=1s&read_timeout=2s&pool_size=5"}).Validate())
	ok(t, (&redis.Options{URL: "redis://a:1?addr=b:2&addr=c:3&pool_size=5"}).Validate())
}

// Keys of other programs are named in the error, and nothing is changed in part.
func TestWrongType(t *testing.T) {
	s := sharedServer(t)
	admin := s.admin(t)
	for _, part := range []string{"m", "i", "x", "u", "p", "c", "d", "vk2"} {
		o := redis.Options{URL: s.url(), Prefix: fmt.Sprintf("t%d:", fixtures.Add(1))}
		m := attach(t, open(t, o))
		ok(t, m.Set(t.Context(), "k1", "before"))
		key := o.Prefix + "{session:s}:" + part
		ok(t, admin.Del(t.Context(), key).Err())
		ok(t, admin.Set(t.Context(), key, "foreign", 0).Err())
		err := m.SetMany(t.Context(), map[string]any{"k1": "after", "k2": "after"})
		fails(t, err, working.ErrWrongType)
		fails(t, err, working.ErrCorrupt)
		var damage *working.CorruptionError
		if !errors.As(err, &damage) || damage.Path != key {
			t.Errorf("%v does not name %s", err, key)
		}
		has(t, m, "k1", "before")
		if v := admin.Get(t.Context(), key).Val(); v != "foreign" {
			t.Errorf("%s is now %q", key, v)
		}
		if part == "p" {
			_, err := m.Notes(t.Context(), -1)
			fails(t, err, working.ErrWrongType)
		}
	}
}

// F58: a damaged checkpoint does not hide the others, and reading one that depends on it returns the
// error.
func TestF58DamagedCheckpoint(t *testing.T) {
	s := sharedServer(t)
	admin := s.admin(t)
	o := redis.Options{URL: s.url(), Prefix: fmt.Sprintf("t%d:", fixtures.Add(1))}
	m := attach(t, open(t, o))
	var ids []string
	mark := func() {
		t.Helper()
		ok(t, m.Set(t.Context(), "k", len(ids)))
		cp, err := m.Checkpoint(t.Context(), "")
		ok(t, err)
		ids = append(ids, cp.ID)
	}
	for range 3 {
		mark()
	}
	ok(t, admin.Del(t.Context(), o.Prefix+"{session:s}:c:"+ids[1]).Err())
	mark()
	list, err := m.Checkpoints(t.Context())
	ok(t, err)
	for i, cp := range list {
		if bad := cp.Err != nil; cp.ID != ids[i] || bad != (i == 1) {
			t.Errorf("checkpoint %d is %+v", i, cp)
		}
		_, err := m.LoadCheckpoint(t.Context(), cp.ID)
		if i == 1 || i == 2 {
			fails(t, err, working.ErrCorrupt)
			_, err = m.Restore(t.Context(), cp.ID)
			fails(t, err, working.ErrCorrupt)
		} else {
			ok(t, err)
		}
	}
	has(t, m, "k", 3.0)
	for _, id := range []string{ids[1], ids[2]} {
		existed, err := m.DeleteCheckpoint(t.Context(), id)
		if err != nil || !existed {
			t.Errorf("%v, %v", existed, err)
		}
	}
	if _, err := m.Restore(t.Context(), ids[0]); err != nil {
		t.Error(err)
	}
	has(t, m, "k", 0.0)
	if _, err := m.Restore(t.Context(), ids[3]); err != nil {
		t.Error(err)
	}
	has(t, m, "k", 3.0)
	// The newest checkpoint is damaged, then deleted: the next one is complete.
	mark()
	ok(t, admin.Del(t.Context(), o.Prefix+"{session:s}:c:"+ids[4]).Err())
	_, err = m.DeleteCheckpoint(t.Context(), ids[4])
	ok(t, err)
	cp, err := m.Checkpoint(t.Context(), "")
	ok(t, err)
	snap, err := m.LoadCheckpoint(t.Context(), cp.ID)
	if err != nil || snap.Values["k"] != 4.0 {
		t.Errorf("%v, %v", snap, err)
	}
}

// Scripts are gone after a restart and after SCRIPT FLUSH; they are sent again.
func TestScriptsGone(t *testing.T) {
	s := start(t)
	m := attach(t, open(t, redis.Options{URL: s.url()}))
	for i := range 3 {
		ok(t, s.admin(t).ScriptFlush(t.Context()).Err())
		ok(t, m.Set(t.Context(), "k", i))
		has(t, m, "k", float64(i))
	}
}

// A server that is short of memory refuses writes, and nothing is changed in part.
func TestMaxMemory(t *testing.T) {
	s := start(t)
	m := attach(t, open(t, redis.Options{URL: s.url()}))
	ok(t, m.Set(t.Context(), "k", "before"))
	ok(t, s.admin(t).ConfigSet(t.Context(), "maxmemory", "1kb").Err())
	fails(t, m.SetMany(t.Context(), map[string]any{"k": "after", "big": strings.Repeat("x", 1<<20)}), working.ErrLimit)
	has(t, m, "k", "before")
	_, err := m.Increment(t.Context(), "n", 1)
	fails(t, err, working.ErrLimit)
	_, err = m.Append(t.Context(), "x")
	fails(t, err, working.ErrLimit)
	_, err = m.Checkpoint(t.Context(), "x")
	fails(t, err, working.ErrLimit)
	existed, err := m.Delete(t.Context(), "k") // room can always be made
	if err != nil || !existed {
		t.Errorf("%v, %v", existed, err)
	}
}

func TestDown(t *testing.T) {
	s := start(t, "--appendonly", "yes", "--appendfsync", "always")
	h := open(t, redis.Options{URL: s.url()})
	m := attach(t, h)
	ok(t, m.Set(t.Context(), "k", 1, working.Expires(time.Hour)))
	cp, err := m.Checkpoint(t.Context(), "")
	ok(t, err)
	created := m.Created()
	s.kill()
	fails(t, m.Set(t.Context(), "k", 2), working.ErrUnavailable)
	_, _, err = m.Get(t.Context(), "k")
	fails(t, err, working.ErrUnavailable)
	_, err = m.Notes(t.Context(), -1)
	fails(t, err, working.ErrUnavailable)
	fails(t, m.Check(t.Context()), working.ErrUnavailable)
	for _, err := range h.Scopes(t.Context()) {
		fails(t, err, working.ErrUnavailable)
	}
	_, err = redis.Open(t.Context(), redis.Options{URL: s.url()})
	fails(t, err, working.ErrUnavailable)
	if m.UsingFallback() {
		t.Error("falls back without being told to")
	}
	s.start()
	ok(t, m.Check(t.Context()))
	has(t, m, "k", 1.0)
	if d, _, err := m.TTL(t.Context(), "k"); err != nil || d <= 0 || d > time.Hour {
		t.Errorf("%v remain, %v", d, err)
	}
	if _, err := m.Restore(t.Context(), cp.ID); err != nil {
		t.Error(err)
	}
	if again := attach(t, h); !again.Created().Equal(created) {
		t.Errorf("created %v, then %v", created, again.Created())
	}
}

// The server is killed and started again under load: acknowledged writes are there, writes that are
// there were acknowledged or had an unknown outcome, and refused ones left nothing behind.
func TestRestartInMidRun(t *testing.T) {
	s := start(t, "--appendonly", "yes", "--appendfsync", "always")
	h := open(t, redis.Options{URL: s.url()})
	m := attach(t, h)
	var done, unknown, refused atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch _, err := m.Increment(t.Context(), "n", 1); {
				case err == nil:
					done.Add(1)
				case errors.Is(err, working.ErrOutcomeUnknown):
					unknown.Add(1)
				case errors.Is(err, working.ErrUnavailable):
					refused.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		for was := done.Load(); done.Load() < was+50; {
			runtime.Gosched()
		}
		s.kill()
		for was := refused.Load(); refused.Load() < was+5; {
			runtime.Gosched()
		}
		s.start()
	}
	close(stop)
	wg.Wait()
	v, _, err := m.Get(t.Context(), "n")
	ok(t, err)
	if n := int64(v.(float64)); n < done.Load() || n > done.Load()+unknown.Load() {
		t.Errorf("n is %d after %d acknowledged and %d unknown", n, done.Load(), unknown.Load())
	}
	t.Logf("%d acknowledged, %d unknown, %d refused", done.Load(), unknown.Load(), refused.Load())
}
