package conformance

import (
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"
)

var storeMembers = []string{"id", "type", "name", "description", "metadata", "created_at", "updated_at", "archived_at"}

var storePatterns = map[string]string{"id": "memstore_[0-9A-Za-z]+", "type": "memory_store", "name": "(?s:.+)",
	"description": "(?s:.*)", "created_at": timePattern, "updated_at": timePattern, "archived_at": ""}

func storeFields(t *testing.T, c *client) {
	s := c.ok(t, "POST", "", object{"name": "Über Äpfel", "description": "d", "metadata": object{"a": "1", "b": "2"}})
	path := "/" + s.text("id")
	s.checkMembers(t, storeMembers...)
	s.matches(t, storePatterns)
	same := func(what string, got, want object) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	same("retrieve", c.ok(t, "GET", path, nil), s)
	if s.text("name") != "Über Äpfel" || s.text("description") != "d" {
		t.Error(s)
	}
	u := c.ok(t, "POST", path, object{"metadata": object{"a": nil, "c": "3"}, "description": ""})
	want := maps.Clone(s)
	want["metadata"], want["description"], want["updated_at"] = object{"b": "2", "c": "3"}, "", u["updated_at"]
	same("update", u, want)
	if u.text("updated_at") <= s.text("updated_at") {
		t.Error("updated_at did not change", u)
	}
	same("an update of nothing", c.ok(t, "POST", path, object{}), u)
	same("retrieve", c.ok(t, "GET", path, nil), u)
	c.memory(t, path, "/a", "x")
	same("a memory changes no store", c.ok(t, "GET", path, nil), u)
	plain := c.ok(t, "POST", "", object{"name": "Über Äpfel"})
	plain.matches(t, storePatterns)
	if m, ok := plain["metadata"].(map[string]any); !ok || len(m) != 0 || plain.text("id") == s.text("id") {
		t.Error(plain)
	}
	for _, s := range []object{s, plain} {
		d := c.ok(t, "DELETE", "/"+s.text("id"), nil)
		same("delete", d, object{"id": s.text("id"), "type": "memory_store_deleted"})
		for _, method := range []string{"GET", "DELETE"} {
			c.fails(t, 404, notFound, method, "/"+s.text("id"), nil)
		}
		c.fails(t, 404, notFound, "GET", "/"+s.text("id")+"/memories", nil)
	}
}

func storeLimits(t *testing.T, c *client) {
	pairs := func(n int) object {
		m := object{}
		for i := range n {
			m[fmt.Sprint("k", i)] = "v"
		}
		return m
	}
	long := strings.Repeat("ü", 2000)
	part := func(n int) string { return string([]rune(long)[:n]) }
	path := c.store(t)
	for _, bad := range []object{
		{"name": ""}, {"name": nil}, {"name": part(256)}, {"name": "a\nb"}, {"name": "a\x00"}, {"name": "\u0085"},
		{"description": part(1025)}, {"metadata": pairs(17)}, {"metadata": object{"": "x"}},
		{"metadata": object{part(65): "x"}}, {"metadata": object{"x": part(513)}},
	} {
		body := maps.Clone(bad)
		if _, ok := body["name"]; !ok {
			body["name"] = "x"
		}
		c.fails(t, 400, invalid, "POST", "", body)
		if bad["name"] != nil || len(bad) == 1 && bad["description"] != nil || bad["metadata"] != nil {
			c.fails(t, 400, invalid, "POST", path, bad)
		}
	}
	most := object{"name": part(255), "description": part(1024), "metadata": pairs(16)}
	s := c.ok(t, "POST", "", most)
	c.ok(t, "DELETE", "/"+s.text("id"), nil)
	c.ok(t, "POST", path, object{"metadata": pairs(16)})
	c.fails(t, 400, invalid, "POST", path, object{"metadata": object{"more": "x"}})
	c.ok(t, "POST", path, object{"metadata": object{"k0": nil, part(64): part(512)}})
}

func storeLists(t *testing.T, c *client) {
	var ids []string
	want := map[string]bool{}
	for range 7 {
		id := strings.TrimPrefix(c.store(t), "/")
		ids = append(ids, id)
		want[id] = true
	}
	at := func(i int) string { return url.QueryEscape(c.ok(t, "GET", "/"+ids[i], nil).text("created_at")) }
	seen := func(query string, between func()) map[string]bool {
		t.Helper()
		got := map[string]bool{}
		for _, s := range c.pages(t, query, between) {
			s.checkMembers(t, storeMembers...)
			if id := s.text("id"); want[id] {
				if got[id] {
					t.Errorf("%s: %s twice", query, id)
				}
				got[id] = true
			}
		}
		return got
	}
	if got := seen("?limit=2", func() { c.store(t) }); !maps.Equal(got, want) {
		t.Errorf("%d of %d stores are listed", len(got), len(want))
	}
	if items, next := c.ok(t, "GET", "?limit=3", nil).list(t); len(items) != 3 || next == "" {
		t.Errorf("%d stores, next_page %q", len(items), next)
	}
	got := seen("?created_at[gte]="+at(2)+"&created_at[lte]="+at(4), nil)
	if len(got) != 3 || !got[ids[2]] || !got[ids[4]] {
		t.Errorf("the list of stores created between two times is %v, want 3 stores", got)
	}
	c.ok(t, "POST", "/"+ids[0]+"/archive", nil)
	if got = seen("?limit=100", nil); got[ids[0]] || len(got) != 6 {
		t.Error("an archived store is listed")
	}
	if got := seen("?limit=100&include_archived=false", nil); got[ids[0]] {
		t.Error("an archived store is listed")
	}
	if got := seen("?include_archived=true&limit=4", nil); !maps.Equal(got, want) {
		t.Error("an archived store is not listed with include_archived")
	}
	for _, query := range []string{"?limit=0", "?limit=101", "?limit=x", "?limit=-1", "?page=x", "?page=", "?name=x",
		"?created_at[gte]=yesterday", "?include_archived=maybe", "?limit=1&limit=2"} {
		c.fails(t, 400, invalid, "GET", query, nil)
	}
}

func archive(t *testing.T, c *client) {
	path := c.store(t)
	a, b := c.memory(t, path, "/a", "one"), c.memory(t, path, "/b", "two")
	before := c.ok(t, "GET", path, nil)
	c.ok(t, "POST", path+"/memories/"+a.text("id"), object{"content": "three"})
	time.Sleep(time.Millisecond) // times have microseconds
	s := c.ok(t, "POST", path+"/archive", nil)
	s.checkMembers(t, storeMembers...)
	if s["archived_at"] == nil || s.text("updated_at") <= before.text("updated_at") {
		t.Error(s)
	}
	if again := c.ok(t, "POST", path+"/archive", nil); again["archived_at"] != s["archived_at"] {
		t.Error("archived again", again)
	}
	for _, r := range []struct{ path, body string }{
		{path, `{"name":"x"}`}, {path + "/memories", `{"path":"/c","content":""}`},
		{path + "/memories/" + a.text("id"), `{"content":"x"}`}, {path + "/memories/" + a.text("id"), `{"path":"/x"}`},
	} {
		if got := c.do(t, "POST", r.path, r.body); got.status < 400 || got.status > 499 {
			t.Errorf("%s %s: %d %s", r.path, r.body, got.status, got.raw)
		}
	}
	if got := c.ok(t, "GET", path+"/memories/"+a.text("id"), nil); got.text("content") != "three" {
		t.Error(got)
	}
	if got := c.pages(t, path+"/memories", nil); len(got) != 2 {
		t.Error(got)
	}
	c.ok(t, "DELETE", path+"/memories/"+b.text("id"), nil)
	r := c.ok(t, "POST", path+"/memory_versions/"+a.text("memory_version_id")+"/redact", nil)
	if r["redacted_at"] == nil {
		t.Error(r)
	}
}
