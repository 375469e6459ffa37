package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// TestServeManyStores: a server of 2,000 stores, of which many more are used than may be open at once, has a bounded
// number of open files and a bounded size in memory.
func TestServeManyStores(t *testing.T) {
	proofs.ManyProcesses(t, "memctl serve is a process, with 2,000 stores")
	t.Parallel()
	const stores, used, mostFiles, mostMemory = 2000, 200, 64*16 + 100, 512 << 20
	dir := t.TempDir()
	folder := filepath.Join(dir, "stores")
	s := startServer(t, dir, nil, "--stores", folder)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	must := func(status int, o map[string]any) map[string]any {
		if status != http.StatusOK {
			t.Errorf("%d %v", status, o)
		}
		return o
	}
	model := fmt.Sprint(must(s.api(t.Context(), client, "POST", "", map[string]any{"name": "model"}))["id"])
	must(s.api(t.Context(), client, "POST", "/"+model+"/memories", map[string]any{"path": "/a.md", "content": "x"}))
	if code := s.end(syscall.SIGTERM); code != cli.CodeOK {
		t.Fatal(code)
	}
	config, err := os.ReadFile(filepath.Join(folder, model, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range stores - 1 {
		id := model[:len(model)-4] + fmt.Sprintf("%04d", i)
		to := filepath.Join(folder, id)
		if i < used {
			err = os.CopyFS(to, os.DirFS(filepath.Join(folder, model)))
			ids = append(ids, id)
		} else {
			err = os.Mkdir(to, 0o700)
		}
		if err == nil {
			own := bytes.ReplaceAll(config, []byte(model), []byte(id))
			err = os.WriteFile(filepath.Join(to, "config.json"), own, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.start()
	n := 0
	for at := "?limit=100"; at != ""; {
		o := must(s.api(t.Context(), client, "GET", at, nil))
		list, _ := o["data"].([]any)
		n += len(list)
		if at = ""; o["next_page"] != nil {
			at = fmt.Sprint("?limit=100&page=", o["next_page"])
		}
	}
	if n != stores {
		t.Errorf("%d stores are listed", n)
	}
	work := make(chan string)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for id := range work {
				memories := "/" + id + "/memories"
				must(s.api(t.Context(), client, "POST", memories, map[string]any{"path": "/b.md", "content": "y"}))
				list, _ := must(s.api(t.Context(), client, "GET", memories, nil))["data"].([]any)
				if len(list) != 2 {
					t.Errorf("%s has %v", id, list)
				}
			}
		})
	}
	files := 0
	proc := fmt.Sprint("/proc/", s.cmd.Process.Pid)
	for _, id := range ids {
		work <- id
		list, err := os.ReadDir(proc + "/fd")
		if err != nil {
			t.Fatal(err)
		}
		files = max(files, len(list))
	}
	close(work)
	all.Wait()
	text, err := os.ReadFile(proc + "/status")
	if err != nil {
		t.Fatal(err)
	}
	memory := 0
	if m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text); m != nil {
		memory, _ = strconv.Atoi(string(m[1]))
		memory <<= 10
	}
	if files > mostFiles || memory == 0 || memory > mostMemory {
		t.Errorf("%d files, %d MiB, at most %d and %d", files, memory>>20, mostFiles, mostMemory>>20)
	}
	t.Logf("%d stores, %d of them used: %d open files and %d MiB at most", stores, used, files, memory>>20)
	if code := s.end(syscall.SIGTERM); code != cli.CodeOK {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
