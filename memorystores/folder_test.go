package memorystores

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/served"
)

// TestConfigChanges: a store is found while its config.json keeps changing.
func TestConfigChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("a")
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for at := time.Now(); ; at = at.Add(time.Millisecond) {
			select {
			case <-stop:
				return
			default:
			}
			if err := os.Chtimes(filepath.Join(s.dir, store[1:], "config.json"), at, at); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		s.want(200, "a", "GET", store, nil)
	}
	close(stop)
	all.Wait()
}

// TestUnnamed: while a store without an id is opened to give it one, requests for others are answered.
func TestUnnamed(t *testing.T) {
	t.Parallel()
	opening, held := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	s := newSite(t, t.TempDir(), Options{Open: func(ctx context.Context, dir string,
		mustExist bool) (*varve.Store, error) {
		if filepath.Base(dir) == "brought" {
			close(opening)
			<-held
		}
		return small(ctx, dir, mustExist)
	}})
	store := s.create("a")
	st, err := small(t.Context(), filepath.Join(s.dir, "brought"), false)
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	listed := make(chan []map[string]any)
	go func() { listed <- s.listed("") }()
	<-opening
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.want(200, "a", "GET", store, nil)
		s.memory(store, "/x", "1")
		s.want(404, "a", "GET", "/"+newStoreID(), nil)
		if err := s.stores.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-answered:
	case <-time.After(20 * time.Second):
		t.Error("requests wait until another store has an id")
		release()
		<-answered
	}
	release()
	if list := <-listed; len(list) != 2 {
		t.Errorf("%v", list)
	}
}

// TestInvalidDescription: a store whose description is not valid is not described anew: its clients would lose it.
func TestInvalidDescription(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("first")
	m := s.memory(store, "/a", "1")
	if err := s.stores.drop(t.Context(), store[1:]); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.dir, store[1:])
	file := filepath.Join(dir, settings.Name)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Replace(good, []byte(`"name": "first"`), []byte(`"name": 7`), 1)
	if bytes.Equal(bad, good) {
		t.Fatalf("%s", good)
	}
	if err := os.WriteFile(file, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	s.want(500, "a", "GET", m, nil)
	if list := s.listed(""); len(list) != 0 {
		t.Errorf("%v", list)
	}
	st, err := small(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := identify(t.Context(), st, "x", time.Now()); err == nil || !strings.Contains(err.Error(), file) ||
		!strings.Contains(err.Error(), "memory_store") {
		t.Errorf("described anew: %v", err)
	}
	err = st.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error { c.HistoryDays = 3; return nil })
	if err == nil || !strings.Contains(err.Error(), "memory_store") {
		t.Errorf("another setting was changed, and the description lost: %v", err)
	}
	single, err := Single(served.Only(st), Options{Name: "alone",
		Caller: func(context.Context) (Caller, bool) { return Caller{Name: "a"}, true }})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, r := range single.Routes() {
		mux.Handle(r.Pattern, r.Handler)
	}
	alone := &site{t: t, stores: single, web: httptest.NewServer(mux)}
	defer alone.web.Close()
	alone.want(500, "a", "GET", "", nil)
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, bad) {
		t.Errorf("%s, %v", now, err)
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	within(t, "the corrected store", 5*time.Second, func() bool {
		status, o := s.do("a", "GET", m, nil)
		return status == 200 && fmt.Sprint(o["content"]) == "1"
	})
}
