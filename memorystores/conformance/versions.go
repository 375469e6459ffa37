package conformance

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
)

var versionMembers = []string{"id", "type", "memory_store_id", "memory_id", "operation", "path", "content",
	"content_sha256", "content_size_bytes", "created_at", "created_by", "redacted_at", "redacted_by"}

// checkVersion checks all members of the version v, which is not redacted, of the memory m. content is the content of
// the version, from which size and hash are computed. shown is the expected value of the member content; "-" means
// null.
func checkVersion(t testing.TB, v object, m object, operation, path, content, shown string) {
	t.Helper()
	v.checkMembers(t, versionMembers...)
	patterns := map[string]string{"id": "memver_[0-9A-Za-z]+", "type": "memory_version", "created_at": timePattern,
		"content_sha256": hashPattern, "redacted_at": "", "redacted_by": ""}
	size := any(fmt.Sprint(len(content)))
	if operation == "deleted" {
		patterns["content_sha256"], patterns["content"] = "", ""
		if v["content_size_bytes"] != nil {
			t.Errorf("content_size_bytes is %v", v["content_size_bytes"])
		}
	} else if fmt.Sprint(v["content_size_bytes"]) != size || v.text("content_sha256") != hashOf(content) {
		t.Errorf("%v does not have the size and hash of %q", v, content)
	}
	v.matches(t, patterns)
	if v["memory_id"] != m["id"] || v["memory_store_id"] != m["memory_store_id"] || v["operation"] != operation ||
		v["path"] != path {
		t.Errorf("%v, want %s of %s at %s", v, operation, m.text("id"), path)
	}
	if shown == "-" && v["content"] != nil || shown != "-" && v["content"] != shown {
		t.Errorf("content is %v, want %q", v["content"], shown)
	}
	by, _ := v["created_by"].(map[string]any)
	if id, _ := by["api_key_id"].(string); by["type"] != "api_actor" || id == "" {
		t.Errorf("created_by is %v, want an api_actor", v["created_by"])
	}
}

func versionFields(t *testing.T, c *client) {
	s := c.store(t)
	m := c.memory(t, s, "/a", "one")
	at := s + "/memories/" + m.text("id")
	u := c.ok(t, "POST", at, object{"content": "twoo"})
	r := c.ok(t, "POST", at, object{"path": "/b"})
	b := c.ok(t, "POST", at, object{"path": "/c", "content": ""})
	c.ok(t, "DELETE", at, nil)
	want := []struct{ operation, path, content string }{{"created", "/a", "one"}, {"modified", "/a", "twoo"},
		{"modified", "/b", "twoo"}, {"modified", "/c", ""}, {"deleted", "/c", ""}}
	for i, o := range []object{m, u, r, b} {
		get := s + "/memory_versions/" + o.text("memory_version_id")
		w := want[i]
		checkVersion(t, c.ok(t, "GET", get, nil), m, w.operation, w.path, w.content, w.content)
		checkVersion(t, c.ok(t, "GET", get+"?view=basic", nil), m, w.operation, w.path, w.content, "-")
	}
	for _, view := range []string{"", "&view=basic", "&view=full"} {
		got := c.pages(t, s+"/memory_versions?limit=2&memory_id="+m.text("id")+view, nil)
		if len(got) != len(want) {
			t.Fatalf("%d versions: %v", len(got), got)
		}
		slices.SortStableFunc(got, func(a, b object) int { // lists may be in either order
			if a.text("created_at") < b.text("created_at") {
				return -1
			}
			return 1
		})
		for i, w := range want {
			shown := "-"
			if view == "&view=full" && w.operation != "deleted" {
				shown = w.content
			}
			checkVersion(t, got[i], m, w.operation, w.path, w.content, shown)
		}
	}
	other := c.store(t)
	c.fails(t, 404, notFound, "GET", other+"/memory_versions/"+m.text("memory_version_id"), nil)
}

func versionLists(t *testing.T, c *client) {
	s := c.store(t)
	var times []string
	var first object
	for i := range 25 {
		m := c.memory(t, s, fmt.Sprint("/", i), "x")
		v := c.ok(t, "GET", s+"/memory_versions/"+m.text("memory_version_id")+"?view=basic", nil)
		if times = append(times, v.text("created_at")); i == 0 {
			first = m
		}
		if i%5 == 0 {
			c.ok(t, "POST", s+"/memories/"+m.text("id"), object{"content": "y"})
		}
		if i%10 == 0 {
			c.ok(t, "DELETE", s+"/memories/"+m.text("id"), nil)
		}
	}
	list := s + "/memory_versions"
	if items, next := c.ok(t, "GET", list, nil).list(t); len(items) != 20 || next == "" {
		t.Errorf("%d versions without a limit, next_page %q; want 20 and more", len(items), next)
	}
	if items, _ := c.ok(t, "GET", list+"?view=full&limit=100", nil).list(t); len(items) != 20 {
		t.Errorf("%d versions with their contents, want 20", len(items))
	}
	v := c.ok(t, "GET", list+"/"+first.text("memory_version_id"), nil)
	by, _ := v["created_by"].(map[string]any)
	key, _ := by["api_key_id"].(string)
	for _, q := range []struct {
		query string
		want  int
	}{
		{"", 33}, {"?limit=1", 33}, {"?operation=created", 25}, {"?operation=modified", 5}, {"?operation=deleted&limit=1", 3},
		{"?memory_id=" + first.text("id"), 3}, {"?memory_id=" + first.text("id") + "&operation=deleted", 1},
		{"?memory_id=mem_none", 0}, {"?api_key_id=" + url.QueryEscape(key), 33}, {"?api_key_id=none", 0},
		{"?session_id=none", 0}, {"?service_account_id=none", 0}, {"?operation=created&limit=4&view=full", 25},
		{"?operation=created&created_at[gte]=" + times[20], 5},
		{"?operation=created&created_at[lte]=" + times[4], 5},
		{"?operation=created&created_at[gte]=" + times[3] + "&created_at[lte]=" + times[7], 5},
	} {
		if got := c.pages(t, list+q.query, nil); len(got) != q.want {
			t.Errorf("%s: %d versions, want %d", q.query, len(got), q.want)
		}
	}
	for _, query := range []string{"?operation=changed", "?limit=0", "?limit=101", "?page=x", "?created_at[gte]=x",
		"?view=half", "?actor=x"} {
		c.fails(t, 400, invalid, "GET", list+query, nil)
	}
}

func redaction(t *testing.T, c *client) {
	s := c.store(t)
	m := c.memory(t, s, "/a", "secret")
	at := s + "/memories/" + m.text("id")
	versions := s + "/memory_versions"
	c.fails(t, 400, invalid, "POST", versions+"/"+m.text("memory_version_id")+"/redact", nil) // it is the current one
	u := c.ok(t, "POST", at, object{"content": "public", "path": "/b"})
	redacted := func(v, of object, operation string) {
		t.Helper()
		v.checkMembers(t, versionMembers...)
		v.matches(t, map[string]string{"id": of.text("memory_version_id"), "type": "memory_version", "path": "",
			"content": "", "content_sha256": "", "redacted_at": timePattern, "created_at": timePattern, "operation": operation,
			"memory_id": m.text("id")})
		by, _ := v["redacted_by"].(map[string]any)
		who, _ := v["created_by"].(map[string]any)
		if v["content_size_bytes"] != nil || by["type"] != "api_actor" || who["type"] != "api_actor" {
			t.Errorf("%v", v)
		}
	}
	v := c.ok(t, "POST", versions+"/"+m.text("memory_version_id")+"/redact", nil)
	redacted(v, m, "created")
	again := c.ok(t, "POST", versions+"/"+m.text("memory_version_id")+"/redact", nil)
	if again["redacted_at"] != v["redacted_at"] {
		t.Error("redacted again", again)
	}
	redacted(c.ok(t, "GET", versions+"/"+m.text("memory_version_id"), nil), m, "created")
	for _, got := range c.pages(t, versions+"?view=full", nil) {
		switch got["id"] {
		case m["memory_version_id"]:
			redacted(got, m, "created")
		default:
			checkVersion(t, got, m, "modified", "/b", "public", "public")
		}
	}
	checkMemory(t, c.ok(t, "GET", at, nil), s, "/b", "public", "public")
	c.fails(t, 400, invalid, "POST", versions+"/"+u.text("memory_version_id")+"/redact", nil)
	c.ok(t, "DELETE", at, nil)
	redacted(c.ok(t, "POST", versions+"/"+u.text("memory_version_id")+"/redact", nil), u, "modified")
	if got := c.pages(t, versions+"?memory_id="+m.text("id"), nil); len(got) != 3 {
		t.Errorf("%d versions after the redactions, want 3: %v", len(got), got)
	}
}

// identity checks that the id of a memory never belongs to another memory, even one at the same path earlier or
// later.
func identity(t *testing.T, c *client) {
	s := c.store(t)
	ids := map[string]bool{}
	for i := range 5 {
		m := c.memory(t, s, "/same", fmt.Sprint(i))
		if ids[m.text("id")] {
			t.Errorf("%s is the id of two memories", m.text("id"))
		}
		ids[m.text("id")] = true
		at := s + "/memories/" + m.text("id")
		if i%2 == 0 {
			c.ok(t, "POST", at, object{"path": fmt.Sprint("/moved/", i)})
			checkMemory(t, c.ok(t, "GET", at, nil), s, fmt.Sprint("/moved/", i), fmt.Sprint(i), fmt.Sprint(i))
		} else {
			c.ok(t, "DELETE", at, nil)
			c.fails(t, 404, notFound, "GET", at, nil)
		}
		if got := c.pages(t, s+"/memory_versions?memory_id="+m.text("id"), nil); len(got) != 2 {
			t.Errorf("%d versions, want 2: %v", len(got), got)
		}
	}
	for _, m := range c.pages(t, s+"/memories", nil) {
		got := c.ok(t, "GET", s+"/memories/"+m.text("id"), nil)
		if got["path"] != m["path"] || !ids[m.text("id")] {
			t.Errorf("the memory %v is listed as %v, which has another path or id", got, m)
		}
	}
}
