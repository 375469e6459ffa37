package memorystores

import (
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// moving moves memories to and fro until the function that it returns is called.
func (s *site) moving(memories map[string][]string) (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	for m, paths := range memories {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
					s.want(200, "mover", "POST", m, map[string]any{"path": paths[i%len(paths)]})
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(done); all.Wait() })
}

// TestMovedWhileListed: while memories are moved, one is found by its id, and each is in one page of a listing, with
// its id.
func TestMovedWhileListed(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("a")
	var want []string
	for i := range 20 {
		want = append(want, s.memory(store, fmt.Sprintf("/m%02d", i), "stays"))
	}
	moved := map[string][]string{}
	for i, paths := range [][]string{{"/z", "/a"}, {"/m05x", "/b/c", "/zz"}, {"/d", "/m19x"}} {
		m := s.memory(store, paths[len(paths)-1], fmt.Sprint("moves ", i))
		moved[m] = paths
		want = append(want, m)
	}
	stop := s.moving(moved)
	defer stop()
	slices.Sort(want)
	for end, n := time.Now().Add(2*time.Second), 0; time.Now().Before(end) || n < 3; n++ {
		for m := range moved {
			s.want(200, "a", "GET", m, nil)
		}
		for _, view := range []string{"basic", "full"} {
			var got []string
			for next := ""; ; {
				path := store + "/memories?limit=3&view=" + view
				if next != "" {
					path += "&page=" + url.QueryEscape(next)
				}
				o := s.want(200, "a", "GET", path, nil)
				data, _ := o["data"].([]any)
				if len(data) > 3 {
					t.Errorf("a page of %d", len(data))
				}
				for _, v := range data {
					item, _ := v.(map[string]any)
					got = append(got, fmt.Sprint(store, "/memories/", item["id"]))
				}
				if next, _ = o["next_page"].(string); next == "" {
					break
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Fatalf("%s, round %d: %d memories are listed, want %d:\n%v\n%v", view, n, len(got), len(want), got, want)
			}
		}
	}
}

// TestMovedBetweenPages: a memory that was moved between two pages keeps its place in the listing, beside one that was
// created where it was; one that was moved in from outside is listed where it is.
func TestMovedBetweenPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("a")
	ids := map[string]string{}
	for _, path := range []string{"/f/b", "/f/d", "/f/h", "/f/k", "/out"} {
		ids[path] = s.memory(store, path, path)
	}
	list := func(query string) (paths []string, next string) {
		t.Helper()
		o := s.want(200, "a", "GET", store+"/memories?limit=2&path_prefix=/f/"+query, nil)
		data, _ := o["data"].([]any)
		for _, v := range data {
			item, _ := v.(map[string]any)
			paths = append(paths, fmt.Sprint(item["path"]))
		}
		next, _ = o["next_page"].(string)
		return paths, next
	}
	first, next := list("")
	if !slices.Equal(first, []string{"/f/b", "/f/d"}) {
		t.Fatal(first)
	}
	move := func(from, to string) {
		t.Helper()
		s.want(200, "a", "POST", ids[from], map[string]any{"path": to})
	}
	move("/f/b", "/f/x") // was shown
	move("/f/d", "/f/y") // was shown, as the last of its page
	move("/f/h", "/f/a") // is not shown yet
	s.memory(store, "/f/h", "a new one")
	move("/out", "/f/m")
	var rest []string
	for next != "" {
		var page []string
		page, next = list("&page=" + url.QueryEscape(next))
		rest = append(rest, page...)
	}
	if want := []string{"/f/h", "/f/a", "/f/k", "/f/m"}; !slices.Equal(rest, want) {
		t.Errorf("%v, want %v", rest, want)
	}
}
