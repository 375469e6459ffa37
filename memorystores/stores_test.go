package memorystores

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/served"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site serves stores for a test. The header caller names the token, "reader" being one that only reads, and "one ID"
// one for a single store.
type site struct {
	t      testing.TB
	dir    string
	stores *Stores
	web    *httptest.Server
}

type callerKey struct{}

// small opens stores with a log of small segments.
func small(ctx context.Context, dir string, mustExist bool) (*varve.Store, error) {
	return varve.Open(ctx, dir, &varve.Options{MustExist: mustExist, SegmentSize: 512 << 10, CacheBytes: -1,
		WatchFiles: true, Writer: &varve.Writer{Program: "test"}})
}

func newSite(t testing.TB, dir string, o Options) *site {
	t.Helper()
	o.Caller = func(ctx context.Context) (Caller, bool) {
		name, _ := ctx.Value(callerKey{}).(string)
		c := Caller{Name: name, ReadOnly: name == "reader"}
		if id, ok := strings.CutPrefix(name, "one "); ok {
			c.Stores = []string{id}
		}
		return c, name != "nobody"
	}
	if o.Open == nil {
		o.Open = small
	}
	s := &site{t: t, dir: dir}
	var err error
	if s.stores, err = Open(dir, o); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, r := range s.stores.Routes() {
		mux.Handle(r.Pattern, r.Handler)
	}
	s.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, r.Header.Get("caller"))))
	}))
	t.Cleanup(s.end)
	return s
}

func (s *site) end() {
	s.web.Close()
	http.DefaultClient.CloseIdleConnections()
	if err := s.stores.Close(); err != nil {
		s.t.Error(err)
	}
}

// do sends a request as a caller, and returns the status and the object that is answered.
func (s *site) do(caller, method, path string, body any) (int, map[string]any) {
	s.t.Helper()
	var b []byte
	if body != nil {
		b, _ = json.Marshal(body)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, s.web.URL+Base+path, bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Anthropic-Beta", Betas()[0])
	req.Header.Set("caller", caller)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Error(err)
		return 0, nil
	}
	defer func() { _ = res.Body.Close() }()
	raw, _ := io.ReadAll(res.Body)
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		s.t.Errorf("%s %s: %d %.200s", method, path, res.StatusCode, raw)
	}
	return res.StatusCode, o
}

func (s *site) want(status int, caller, method, path string, body any) map[string]any {
	s.t.Helper()
	got, o := s.do(caller, method, path, body)
	if got != status {
		s.t.Errorf("%s %s %s: %d %v, want %d", caller, method, path, got, o, status)
	}
	return o
}

// create makes a store, and returns its path.
func (s *site) create(name string) string {
	s.t.Helper()
	id, _ := s.want(200, "a", "POST", "", map[string]any{"name": name})["id"].(string)
	return "/" + id
}

// memory makes a memory, and returns its path.
func (s *site) memory(store, path, content string) string {
	s.t.Helper()
	o := s.want(200, "a", "POST", store+"/memories", map[string]any{"path": path, "content": content})
	id, _ := o["id"].(string)
	return store + "/memories/" + id
}

func (s *site) listed(path string) (list []map[string]any) {
	s.t.Helper()
	data, _ := s.want(200, "a", "GET", path, nil)["data"].([]any)
	for _, v := range data {
		m, _ := v.(map[string]any)
		list = append(list, m)
	}
	return list
}

func within(t testing.TB, what string, d time.Duration, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%s: not within %s", what, d)
			return
		}
	}
}

// TestCallers: what a token may do, and with which stores.
func TestCallers(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	a, b := s.create("a"), s.create("b")
	m := s.memory(a, "/x", "1")
	one := "one " + a[1:]
	for _, c := range []struct {
		status               int
		caller, method, path string
		body                 any
	}{
		{403, "nobody", "GET", "", nil}, {403, "reader", "POST", "", map[string]any{"name": "x"}},
		{403, "reader", "POST", a, map[string]any{"name": "x"}}, {403, "reader", "DELETE", a, nil},
		{403, "reader", "POST", a + "/archive", nil}, {403, "reader", "DELETE", m, nil},
		{403, "reader", "POST", m, map[string]any{"content": "x"}}, {200, "reader", "GET", m, nil},
		{403, "reader", "POST", a + "/memories", map[string]any{"path": "/y", "content": "x"}},
		{403, "reader", "POST", a + "/memory_versions/memver_x/redact", nil},
		{403, one, "POST", "", map[string]any{"name": "x"}}, {200, one, "GET", m, nil}, {200, one, "GET", a, nil},
		{404, one, "GET", b, nil}, {404, one, "DELETE", b, nil}, {404, one, "GET", b + "/memories", nil},
		{404, one, "POST", b + "/archive", nil}, {404, one, "GET", b + "/memories/" + filepath.Base(m), nil},
		{404, one, "GET", b + "/memory_versions", nil}, {405, "a", "PUT", a, nil}, {404, "a", "GET", a + "/x/y/z", nil},
	} {
		o := s.want(c.status, c.caller, c.method, c.path, c.body)
		if c.status != 200 && o["type"] != "error" {
			t.Errorf("%v", o)
		}
	}
	data, _ := s.want(200, one, "GET", "", nil)["data"].([]any)
	if len(data) != 1 {
		t.Errorf("%v", data)
	}
}

// TestFiles: a memory is a file, and a file a memory, while the store is open and when it is opened.
func TestFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("files")
	notes := filepath.Join(s.dir, store[1:], "notes")
	m := s.memory(store, "/dir/a.md", "from the API")
	within(t, "the file", 5*time.Second, func() bool {
		b, err := os.ReadFile(filepath.Join(notes, "dir", "a.md"))
		return err == nil && string(b) == "from the API"
	})
	write := func(path, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(notes, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("dir/a.md", "by hand")
	if o := s.want(200, "a", "GET", m, nil); o["content"] != "by hand" {
		t.Errorf("%v", o)
	}
	write("new.md", "a new file")
	within(t, "the new memory", 5*time.Second, func() bool { return len(s.listed(store+"/memories")) == 2 })
	versions := s.listed(store + "/memory_versions?view=full")
	if len(versions) != 3 || versions[0]["created_by"] != nil || versions[2]["content"] != "from the API" {
		t.Errorf("%v", versions)
	}
	if err := s.stores.drop(t.Context(), store[1:]); err != nil { // as when it is not used
		t.Fatal(err)
	}
	write("closed.md", "while closed")
	write("dir/a.md", "changed while closed")
	write("large.md", strings.Repeat("x", MostContent+1))
	write("latin1.md", "caf\xe9")
	if list := s.listed(store + "/memories?view=full"); len(list) != 5 {
		t.Errorf("%d memories: %v", len(list), list)
	} else if list[0]["content"] != "while closed" || list[1]["content"] != "changed while closed" ||
		list[2]["content"] != nil || list[2]["content_size_bytes"] != float64(MostContent+1) || list[3]["content"] != nil {
		t.Errorf("%v", list)
	} else {
		large, latin := fmt.Sprint(store, "/memories/", list[2]["id"]), fmt.Sprint(store, "/memories/", list[3]["id"])
		if o := s.want(200, "a", "GET", large, nil); o["content"] != nil || o["content_sha256"] == nil {
			t.Errorf("%v", o)
		}
		s.want(400, "a", "GET", latin, nil)
		s.want(200, "a", "GET", latin+"?view=basic", nil)
		for _, path := range []string{large, latin} {
			s.want(400, "a", "POST", path, map[string]any{"content": "x"})
			s.want(400, "a", "DELETE", path, nil)
		}
	}
	if err := os.Remove(filepath.Join(notes, "new.md")); err != nil {
		t.Fatal(err)
	}
	within(t, "the deletion", 10*time.Second, func() bool { return len(s.listed(store+"/memories")) == 4 })
}

// TestFolders: stores that are put there, renamed, copied, replaced, removed and damaged while they are served.
func TestFolders(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("first")
	m := s.memory(store, "/a", "1")
	at := func(name string) string { return filepath.Join(s.dir, name) }
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(at(from), at(to)); err != nil {
			t.Fatal(err)
		}
	}
	rename(store[1:], "renamed")
	within(t, "the renamed store", 5*time.Second, func() bool {
		status, o := s.do("a", "GET", m, nil)
		return status == 200 && o["content"] == "1"
	})
	s.want(200, "a", "POST", m, map[string]any{"content": "2"})
	if err := s.stores.drop(t.Context(), store[1:]); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(at("copy"), os.DirFS(at("renamed"))); err != nil {
		t.Fatal(err)
	}
	o := s.want(409, "a", "GET", m, nil)
	if text := fmt.Sprint(o["error"]); !strings.Contains(text, "copy and renamed") {
		t.Error(text)
	}
	s.want(409, "a", "DELETE", store, nil)
	if list := s.listed(""); len(list) != 0 {
		t.Errorf("a store with a copy is listed: %v", list)
	}
	if err := os.RemoveAll(at("copy")); err != nil {
		t.Fatal(err)
	}
	s.want(200, "a", "GET", m, nil)
	// A store of another program gets an id.
	st, err := small(t.Context(), at("brought"), false)
	if err == nil {
		_, err = st.Notes().Write(t.Context(), "x", []byte("brought along"))
	}
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	list := s.listed("")
	if len(list) != 2 || list[0]["name"] != "brought" {
		t.Fatalf("%v", list)
	}
	brought := fmt.Sprint("/", list[0]["id"])
	if list := s.listed(brought + "/memories?view=full"); len(list) != 1 || list[0]["content"] != "brought along" {
		t.Errorf("%v", list)
	}
	// Damage is told, and heals.
	good, err := os.ReadFile(at("brought/config.json"))
	if err != nil {
		t.Fatal(err)
	}
	damage := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(at("brought/config.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage([]byte("{"))
	s.want(500, "a", "GET", brought+"/memories", nil)
	s.want(200, "a", "GET", m, nil)
	damage(good)
	s.want(200, "a", "GET", brought+"/memories", nil)
	// Replaced by an older copy, and removed.
	if err := s.stores.drop(t.Context(), store[1:]); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(at(".older"), os.DirFS(at("renamed"))); err != nil {
		t.Fatal(err)
	}
	s.want(200, "a", "POST", m, map[string]any{"content": "3"})
	rename("renamed", ".gone")
	rename(".older", "renamed")
	within(t, "the store in its place", 5*time.Second, func() bool {
		status, o := s.do("a", "GET", m, nil)
		return status == 200 && o["content"] == "2"
	})
	s.want(200, "a", "POST", m, map[string]any{"content": "4"})
	if err := os.RemoveAll(at("renamed")); err != nil {
		t.Fatal(err)
	}
	within(t, "the end of the store", 5*time.Second, func() bool {
		status, _ := s.do("a", "GET", m, nil)
		return status == 404
	})
	s.want(404, "a", "GET", store, nil)
	if err := os.Symlink(at(".gone"), at("link")); err == nil && len(s.listed("")) != 1 {
		t.Error("a store behind a link is served")
	}
}

// TestTrash: a deleted store is in the trash until its time is over, and requests for it end before.
func TestTrash(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	s := newSite(t, t.TempDir(), Options{Clock: clock, Trash: time.Hour})
	s.stores.uptime = clock
	store := s.create("short")
	var all sync.WaitGroup
	var acknowledged sync.Map
	for i := range 8 {
		all.Go(func() {
			for n := 0; ; n++ {
				path := fmt.Sprintf("/%d-%d", i, n)
				status, _ := s.do("a", "POST", store+"/memories", map[string]any{"path": path, "content": "x"})
				if status != 200 {
					return
				}
				acknowledged.Store(path, true)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	s.want(200, "a", "DELETE", store, nil)
	all.Wait()
	s.want(404, "a", "DELETE", store, nil)
	trash := filepath.Join(s.dir, trashName)
	list, err := os.ReadDir(trash)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	st, err := small(t.Context(), filepath.Join(trash, list[0].Name()), true)
	if err != nil {
		t.Fatal(err)
	}
	acknowledged.Range(func(path, _ any) bool {
		if _, err := st.Notes().Read(t.Context(), fmt.Sprint(path)[1:]); err != nil {
			t.Error(err)
		}
		return true
	})
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		after time.Duration
		left  int
	}{{time.Hour - time.Second, 1}, {time.Second, 1}, {oldFor - 1, 1}, {1, 0}} {
		mu.Lock()
		now = now.Add(c.after)
		mu.Unlock()
		s.stores.emptyTrash(t.Context())
		if list, _ := os.ReadDir(trash); len(list) != c.left {
			t.Errorf("%s later: %v", c.after, list)
		}
	}
}

// TestManyStores: of many stores a few are open at once, with few files.
func TestManyStores(t *testing.T) {
	t.Parallel()
	const stores, used, most = 2000, 60, 4
	dir := t.TempDir()
	s := newSite(t, dir, Options{MostOpen: most})
	model := s.create("model")
	s.memory(model, "/a", "x")
	if err := s.stores.drop(t.Context(), model[1:]); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, model[1:], "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range stores {
		id := newStoreID()
		to := filepath.Join(dir, id)
		if i < used {
			if err := os.CopyFS(to, os.DirFS(filepath.Join(dir, model[1:]))); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		} else if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
		own := bytes.ReplaceAll(text, []byte(model[1:]), []byte(id))
		if err := os.WriteFile(filepath.Join(to, "config.json"), own, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for at := "?limit=100"; ; {
		o := s.want(200, "a", "GET", at, nil)
		data, _ := o["data"].([]any)
		n += len(data)
		next, _ := o["next_page"].(string)
		if next == "" {
			break
		}
		at = "?limit=100&page=" + next
	}
	if n != stores+1 {
		t.Errorf("%d stores are listed", n)
	}
	files := func() int {
		list, _ := os.ReadDir("/proc/self/fd")
		return len(list)
	}
	var all sync.WaitGroup
	work := make(chan string)
	for range 8 {
		all.Go(func() {
			for id := range work {
				if list := s.listed("/" + id + "/memories"); len(list) != 1 {
					t.Errorf("%s: %v", id, list)
				}
			}
		})
	}
	mostOpen, mostFiles := 0, 0
	for _, id := range ids {
		work <- id
		mostOpen, mostFiles = max(mostOpen, s.stores.Opened()), max(mostFiles, files())
	}
	close(work)
	all.Wait()
	if mostOpen > most {
		t.Errorf("%d stores were open, the limit is %d", mostOpen, most)
	}
	t.Logf("%d stores, %d open at most, %d files with those of other tests, %d goroutines", stores, mostOpen, mostFiles,
		runtime.NumGoroutine())
}

// TestTwoServers: two servers over one folder see each other's stores and memories, and conditions hold across them.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := newSite(t, dir, Options{}), newSite(t, dir, Options{})
	store := a.create("shared")
	m := a.memory(store, "/counter", "0")
	if o := b.want(200, "b", "GET", m, nil); o["content"] != "0" {
		t.Errorf("%v", o)
	}
	const each = 20
	var all sync.WaitGroup
	for _, s := range []*site{a, b, a, b} {
		all.Go(func() {
			for done := 0; done < each && !t.Failed(); {
				o := s.want(200, "x", "GET", m, nil)
				n := 0
				_, _ = fmt.Sscan(fmt.Sprint(o["content"]), &n)
				status, o := s.do("x", "POST", m, map[string]any{"content": fmt.Sprint(n + 1), "precondition": map[string]any{
					"type": "content_sha256", "content_sha256": o["content_sha256"]}})
				switch status {
				case 200:
					done++
				case 409:
				default:
					t.Errorf("%d %v", status, o)
				}
			}
		})
	}
	all.Wait()
	for _, s := range []*site{a, b} {
		if o := s.want(200, "x", "GET", m, nil); o["content"] != fmt.Sprint(4*each) {
			t.Errorf("%v", o["content"])
		}
		if list := s.listed(store + "/memory_versions?limit=100"); len(list) != 4*each+1 {
			t.Errorf("%d versions", len(list))
		}
	}
	b.want(200, "b", "POST", m, map[string]any{"path": "/moved"})
	if o := a.want(200, "a", "GET", m, nil); o["path"] != "/moved" {
		t.Errorf("%v", o)
	}
	b.want(200, "b", "POST", store+"/archive", nil)
	within(t, "the archive", 5*time.Second, func() bool {
		status, _ := a.do("a", "POST", m, map[string]any{"content": fmt.Sprint(time.Now())})
		return status == 400
	})
	b.want(200, "b", "DELETE", store, nil)
	within(t, "the deletion", 5*time.Second, func() bool {
		status, _ := a.do("a", "GET", m, nil)
		return status == 404
	})
}

// TestSingle: one store that is open already has an id from its first request on, and is neither deleted nor joined by
// others.
func TestSingle(t *testing.T) {
	t.Parallel()
	st, err := small(t.Context(), filepath.Join(t.TempDir(), "alone"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	single, err := Single(served.Only(st), Options{Name: "alone",
		Caller: func(context.Context) (Caller, bool) { return Caller{Name: "a"}, true }})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, r := range single.Routes() {
		mux.Handle(r.Pattern, r.Handler)
	}
	s := &site{t: t, stores: single, web: httptest.NewServer(mux)}
	defer s.web.Close()
	if c := st.Admin().Config().MemoryStore; c != nil {
		t.Error("a store that is not asked for has an id")
	}
	list := s.listed("")
	if len(list) != 1 || list[0]["name"] != "alone" {
		t.Fatalf("%v", list)
	}
	store := fmt.Sprint("/", list[0]["id"])
	m := s.memory(store, "/a", "x")
	if n, err := st.Notes().Read(t.Context(), "a"); err != nil || string(n.Content) != "x" {
		t.Error(n, err)
	}
	s.want(200, "a", "GET", m, nil)
	s.want(403, "a", "POST", "", map[string]any{"name": "x"})
	s.want(403, "a", "DELETE", store, nil)
	s.want(404, "a", "GET", "/memstore_x", nil)
	if o := s.want(200, "a", "POST", store, map[string]any{"name": "renamed"}); o["name"] != "renamed" {
		t.Errorf("%v", o)
	}
}
