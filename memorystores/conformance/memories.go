package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

var memoryMembers = []string{"id", "type", "memory_store_id", "memory_version_id", "path", "content", "content_sha256",
	"content_size_bytes", "created_at", "updated_at"}

func hashOf(content string) string {
	h := sha256.Sum256([]byte(content))
	return hex.EncodeToString(h[:])
}

// checkMemory checks all members of the memory m. content is its content, from which size and hash are computed. shown
// is the expected value of the member content; "-" means null.
func checkMemory(t testing.TB, m object, store, path, content, shown string) {
	t.Helper()
	m.checkMembers(t, memoryMembers...)
	m.matches(t, map[string]string{"id": "mem_[0-9A-Za-z]+", "type": "memory",
		"memory_version_id": "memver_[0-9A-Za-z]+",
		"content_sha256":    hashPattern, "created_at": timePattern, "updated_at": timePattern})
	if m.text("path") != path || "/"+m.text("memory_store_id") != store || m.text("content_sha256") != hashOf(content) ||
		fmt.Sprint(m["content_size_bytes"]) != fmt.Sprint(len(content)) {
		t.Errorf("%v does not describe the memory %s of store %s with %d bytes", m, path, store, len(content))
	}
	if shown == "-" && m["content"] != nil || shown != "-" && m["content"] != shown {
		t.Errorf("content is %v, want %q", m["content"], shown)
	}
}

func memoryFields(t *testing.T, c *client) {
	s := c.store(t)
	const text = "Grüße, \u2028 \"quoted\" <&>\t\x00 \U0001F600\r\n"
	m := c.memory(t, s, "/projects/foo/notes.md", text)
	checkMemory(t, m, s, "/projects/foo/notes.md", text, "-")
	at := s + "/memories/" + m.text("id")
	if m.text("created_at") != m.text("updated_at") {
		t.Error("created and updated at different times", m)
	}
	checkMemory(t, c.ok(t, "GET", at, nil), s, "/projects/foo/notes.md", text, text)
	checkMemory(t, c.ok(t, "GET", at+"?view=full", nil), s, "/projects/foo/notes.md", text, text)
	checkMemory(t, c.ok(t, "GET", at+"?view=basic", nil), s, "/projects/foo/notes.md", text, "-")
	u := c.ok(t, "POST", at, object{"content": "new"})
	checkMemory(t, u, s, "/projects/foo/notes.md", "new", "-")
	if u["id"] != m["id"] || u["memory_version_id"] == m["memory_version_id"] || u["created_at"] != m["created_at"] ||
		u.text("updated_at") <= m.text("updated_at") {
		t.Errorf("%v after %v", u, m)
	}
	if same := c.ok(t, "POST", at, object{"content": "new"}); same["memory_version_id"] != u["memory_version_id"] {
		t.Error("an update without a change made a version")
	}
	if same := c.ok(t, "POST", at, object{}); same["memory_version_id"] != u["memory_version_id"] {
		t.Error("an empty update made a version")
	}
	checkMemory(t, c.ok(t, "POST", at+"?view=full", object{"path": "/a.md"}), s, "/a.md", "new", "new")
	both := c.ok(t, "POST", at+"?view=full", object{"path": "/b/c.md", "content": "both"})
	checkMemory(t, both, s, "/b/c.md", "both", "both")
	if both["id"] != m["id"] || both["created_at"] != m["created_at"] {
		t.Errorf("%v after %v", both, m)
	}
	checkMemory(t, c.ok(t, "GET", at, nil), s, "/b/c.md", "both", "both")
	full := c.ok(t, "POST", s+"/memories?view=full", object{"path": "/empty", "content": ""})
	checkMemory(t, full, s, "/empty", "", "")
	d := c.ok(t, "DELETE", at, nil)
	if d.checkMembers(t, "id", "type"); d["id"] != m["id"] || d["type"] != "memory_deleted" {
		t.Error(d)
	}
	for _, method := range []string{"GET", "DELETE"} {
		c.fails(t, 404, notFound, method, at, nil)
	}
	c.fails(t, 404, notFound, "POST", at, object{"content": "x"})
	other := c.store(t)
	c.fails(t, 404, notFound, "GET", other+"/memories/"+full.text("id"), nil)
}

func memoryLimits(t *testing.T, c *client) {
	s := c.store(t)
	most := strings.Repeat("é", 102_400/2)
	m := c.memory(t, s, "/most", most)
	checkMemory(t, c.ok(t, "GET", s+"/memories/"+m.text("id"), nil), s, "/most", most, most)
	c.fails(t, 400, invalid, "POST", s+"/memories", object{"path": "/more", "content": most + "x"})
	c.fails(t, 400, invalid, "POST", s+"/memories/"+m.text("id"), object{"content": most + "x"})
	for _, body := range []string{`{"path":"/x"}`, `{"content":"x"}`, `{"path":"/x","content":null}`,
		`{"path":null,"content":""}`, `{"path":"/x","content":"","mode":1}`, "{\"path\":\"/x\",\"content\":\"\xff\"}",
		`{"path":"/x","content":"\udc00"}`, `{"path":"/x","content":1}`, ``, `[]`} {
		c.fails(t, 400, invalid, "POST", s+"/memories", body)
	}
	for _, body := range []string{`{"precondition":{}}`, `{"precondition":{"type":"etag","content_sha256":"x"}}`,
		`{"precondition":{"type":"content_sha256"}}`, `{"precondition":{"type":"content_sha256","content_sha256":"00"}}`,
		`{"precondition":{"type":"content_sha256","content_sha256":"` + strings.ToUpper(hashOf(most)) + `"}}`, `{"id":"x"}`} {
		c.fails(t, 400, invalid, "POST", s+"/memories/"+m.text("id"), body)
	}
	for _, query := range []string{"?view=half", "?depth=1"} {
		c.fails(t, 400, invalid, "GET", s+"/memories/"+m.text("id")+query, nil)
	}
	c.fails(t, 400, invalid, "DELETE", s+"/memories/"+m.text("id")+"?expected_content_sha256=x", nil)
	for _, query := range []string{"?limit=0", "?limit=101", "?depth=-1", "?depth=x", "?view=half", "?path_prefix=/a",
		"?path_prefix=a/", "?path_prefix=/../", "?path_prefix=//", "?page=x", "?page=page_AA", "?prefix=/a/"} {
		c.fails(t, 400, invalid, "GET", s+"/memories"+query, nil)
	}
}

func paths(t *testing.T, c *client) {
	s := c.store(t)
	long := strings.Repeat("x", 250)
	for _, path := range []string{"", "a", "/", "//", "/a/", "/a//b", "/.", "/..", "/a/./b", "/a/../b",
		"/../../etc/passwd", "/a\x00", "/a\nb", "/a\u200db", "/a\u2028b", "/a\u2029", "/\ufeffa", "/e\u0301",
		"/" + strings.Repeat("a/", 20) + "a",
		"/" + long + "/" + long + "/" + long + "/" + long + "/" + long} {
		c.fails(t, 400, invalid, "POST", s+"/memories", object{"path": path, "content": "x"})
	}
	m := c.memory(t, s, "/from", "x")
	c.fails(t, 400, invalid, "POST", s+"/memories/"+m.text("id"), object{"path": "/a/../b"})
	for i, path := range []string{"/a", "/é", "/.hidden", "/…", "/a b/c%2e%2e/\\d", "/CON", "/%2e%2e", "/~", "/*?<>|:",
		"/" + strings.Repeat("b/", 19) + "b", "/" + long + "/" + long + "/" + long + "/" + long[:200], "/日本/メモ.md"} {
		content := fmt.Sprint(i)
		m := c.memory(t, s, path, content)
		checkMemory(t, c.ok(t, "GET", s+"/memories/"+m.text("id"), nil), s, path, content, content)
		c.fails(t, 409, taken, "POST", s+"/memories", object{"path": path, "content": content})
	}
	c.fails(t, 409, taken, "POST", s+"/memories/"+m.text("id"), object{"path": "/a"})
	if got := c.ok(t, "GET", s+"/memories/"+m.text("id"), nil); got.text("path") != "/from" {
		t.Error(got)
	}
}

func preconditions(t *testing.T, c *client) {
	s := c.store(t)
	m := c.memory(t, s, "/a", "one")
	at := s + "/memories/" + m.text("id")
	with := func(hash string, o object) object {
		o["precondition"] = object{"type": "content_sha256", "content_sha256": hash}
		return o
	}
	c.fails(t, 409, failed, "POST", at, with(hashOf("other"), object{"content": "two"}))
	c.fails(t, 409, failed, "POST", at, with(hashOf("other"), object{"path": "/b"}))
	c.fails(t, 409, failed, "DELETE", at+"?expected_content_sha256="+hashOf("other"), nil)
	checkMemory(t, c.ok(t, "GET", at, nil), s, "/a", "one", "one")
	c.ok(t, "POST", at, with(hashOf("one"), object{"content": "two", "path": "/b"}))
	c.fails(t, 409, failed, "POST", at, with(hashOf("one"), object{"content": "three"}))
	c.ok(t, "POST", at, with(hashOf("two"), object{"path": "/c"}))
	checkMemory(t, c.ok(t, "GET", at, nil), s, "/c", "two", "two")
	c.ok(t, "DELETE", at+"?expected_content_sha256="+hashOf("two"), nil)
	c.fails(t, 404, notFound, "DELETE", at+"?expected_content_sha256="+hashOf("two"), nil)
}

func pathsOf(items []object) (list []string) {
	for _, m := range items {
		list = append(list, m.text("path"))
	}
	return list
}

func lists(t *testing.T, c *client) {
	s := c.store(t)
	if items, next := c.ok(t, "GET", s+"/memories", nil).list(t); len(items) != 0 || next != "" {
		t.Error(items, next)
	}
	all := []string{"/a.md", "/notes-archive/x", "/notes.md", "/notes/deep/er/1", "/notes/deep/er/2", "/notes/todo.md",
		"/z"}
	for i := range 30 {
		all = append(all, fmt.Sprintf("/many/%03d", i))
	}
	for _, path := range all {
		c.memory(t, s, path, path)
	}
	slices.Sort(all)
	for _, q := range []struct {
		query string
		want  []string
	}{
		{"", all}, {"?limit=1", all}, {"?limit=100&depth=0", all}, {"?path_prefix=/&limit=7", all},
		{"?path_prefix=/notes/", []string{"/notes/deep/er/1", "/notes/deep/er/2", "/notes/todo.md"}},
		{"?depth=1&limit=2", []string{"/a.md", "/many/", "/notes-archive/", "/notes.md", "/notes/", "/z"}},
		{"?path_prefix=/notes/&depth=1", []string{"/notes/deep/", "/notes/todo.md"}},
		{"?path_prefix=/notes/&depth=2&limit=1", []string{"/notes/deep/er/", "/notes/todo.md"}},
		{"?path_prefix=/notes/&depth=20", []string{"/notes/deep/er/1", "/notes/deep/er/2", "/notes/todo.md"}},
		{"?path_prefix=/none/", nil}, {"?path_prefix=/notes/todo.md/", nil},
	} {
		got := c.pages(t, s+"/memories"+q.query, nil)
		list := pathsOf(got)
		if slices.Sort(list); !slices.Equal(list, q.want) {
			t.Errorf("%s: %q, want %q", q.query, list, q.want)
		}
		for _, m := range got {
			if path := m.text("path"); strings.HasSuffix(path, "/") {
				if m.checkMembers(t, "path", "type"); m.text("type") != "memory_prefix" {
					t.Error(m)
				}
			} else {
				checkMemory(t, m, s, path, path, "-")
			}
		}
	}
	if items, _ := c.ok(t, "GET", s+"/memories", nil).list(t); len(items) != 20 {
		t.Errorf("%d items without a limit, want 20", len(items))
	}
	items, next := c.ok(t, "GET", s+"/memories?view=full&limit=100", nil).list(t)
	if len(items) != 20 || next == "" {
		t.Errorf("%d items with their contents, next_page %q, want 20 and more", len(items), next)
	}
	for _, m := range items {
		checkMemory(t, m, s, m.text("path"), m.text("path"), m.text("path"))
	}
	if full := c.pages(t, s+"/memories?view=full&limit=100", nil); len(full) != len(all) {
		t.Errorf("%d of %d memories were listed with their contents", len(full), len(all))
	}
}

// listsUnderWrites checks that a memory which exists during a whole listing is on exactly one of its pages, even if
// other memories are written meanwhile.
func listsUnderWrites(t *testing.T, c *client) {
	s := c.store(t)
	var all []string
	var others []object
	for i := range 40 {
		all = append(all, fmt.Sprintf("/keep/%02d", i))
		c.memory(t, s, all[i], "x")
		others = append(others, c.memory(t, s, fmt.Sprintf("/keep/%02d-other", i), "x"))
	}
	n := 0
	for _, query := range []string{"?limit=7", "?limit=7&path_prefix=/keep/", "?limit=5&view=full"} {
		got := c.pages(t, s+"/memories"+query, func() {
			if n < len(others) {
				c.ok(t, "DELETE", s+"/memories/"+others[n].text("id"), nil)
			}
			c.memory(t, s, fmt.Sprintf("/keep/%02d-new-%d", 39-n%40, n), "x")
			c.memory(t, s, fmt.Sprintf("/another/%d", n), "x")
			n++
		})
		list := slices.DeleteFunc(pathsOf(got), func(path string) bool { return !slices.Contains(all, path) })
		if slices.Sort(list); !slices.Equal(list, all) {
			t.Errorf("%s: %q", query, list)
		}
	}
	before := len(c.pages(t, s+"/memory_versions?limit=100", nil))
	got := c.pages(t, s+"/memory_versions?limit=9", func() { c.memory(t, s, fmt.Sprint("/late/", n), "x"); n++ })
	seen := map[string]bool{}
	for _, v := range got {
		if seen[v.text("id")] {
			t.Errorf("%s twice", v.text("id"))
		}
		seen[v.text("id")] = true
	}
	if len(seen) < before {
		t.Errorf("%d of %d versions", len(seen), before)
	}
}

// atOnce checks conditional writes by several clients at the same time. Each write is conditional on the content that
// its client has read, and must replace exactly that content.
func atOnce(t *testing.T, c *client) {
	s := c.store(t)
	const each = 8
	counter := c.memory(t, s, "/counter", "0")
	at := s + "/memories/" + counter.text("id")
	var all sync.WaitGroup
	var mu sync.Mutex
	created, deleted := 0, 0
	for i := range clients {
		all.Go(func() {
			for done := 0; done < each && !t.Failed(); {
				m, err := c.try(t, "GET", at, nil)
				if err != nil || m.status != 200 {
					t.Errorf("%d %s %v", m.status, m.raw, err)
					return
				}
				n := 0
				_, _ = fmt.Sscan(m.object.text("content"), &n)
				u, err := c.try(t, "POST", at, object{"content": fmt.Sprint(n + 1), "precondition": object{
					"type": "content_sha256", "content_sha256": m.object.text("content_sha256")}})
				switch {
				case err != nil || u.status != 200 && u.status != 409:
					t.Errorf("%d %s %v", u.status, u.raw, err)
					return
				case u.status == 200:
					done++
				}
			}
			path := s + "/memories"
			a, err := c.try(t, "POST", path, object{"path": "/only-one", "content": fmt.Sprint(i)})
			if err != nil || a.status != 200 && a.status != 409 {
				t.Errorf("%d %s %v", a.status, a.raw, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if a.status == 200 {
				created++
			}
		})
	}
	all.Wait()
	if got := c.ok(t, "GET", at, nil); got.text("content") != fmt.Sprint(clients*each) {
		t.Errorf("%d updates made %s", clients*each, got.text("content"))
	}
	if created != 1 {
		t.Errorf("%d clients created the same memory, want 1", created)
	}
	hash := c.ok(t, "GET", at, nil).text("content_sha256")
	for range clients {
		all.Go(func() {
			a, err := c.try(t, "DELETE", at+"?expected_content_sha256="+url.QueryEscape(hash), nil)
			if err != nil || a.status != 200 && a.status != 404 {
				t.Errorf("%d %s %v", a.status, a.raw, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if a.status == 200 {
				deleted++
			}
		})
	}
	all.Wait()
	if deleted != 1 {
		t.Errorf("%d clients deleted the same memory, want 1", deleted)
	}
	ops := map[string]int{}
	for _, v := range c.pages(t, s+"/memory_versions?limit=50&memory_id="+counter.text("id"), nil) {
		ops[v.text("operation")]++
	}
	if ops["created"] != 1 || ops["modified"] != clients*each || ops["deleted"] != 1 {
		t.Errorf("versions: %v, want 1 created, %d modified, 1 deleted", ops, clients*each)
	}
}
