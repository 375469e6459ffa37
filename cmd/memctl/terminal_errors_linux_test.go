package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve/cmd/memctl/internal/evil"
)

// The same of what strangers wrote elsewhere than in memories: notes of migrations and
// backups, settings, names of processes, answers of services.
func TestTerminalOfStrangersNotes(t *testing.T) {
	t.Parallel()
	memctl, err := exec.LookPath("memctl")
	if err != nil {
		t.Fatal(err)
	}
	e := quoted(t, evil.Text)
	const uuids = `"id":"0190f3a5-0000-7000-8000-000000000000","store":"0190f3a5-0000-7000-8000-000000000000"`
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%s}}`, e)
	}))
	defer service.Close()
	own, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/proc/self/comm", []byte("\x1b[35mE\u009b\u202e\n"), 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.WriteFile("/proc/self/comm", own, 0) }()

	type files map[string]string
	for name, c := range map[string]struct {
		files files
		locks bool
		env   []string
		args  [][]string
		shows string // that the text came at all
	}{
		"moved": {
			files: files{"moved.json": `{"varve_moved":1,` + uuids + `,"to":` + e + `,"when":"2026-01-01T00:00:00Z"}`},
			args:  [][]string{{"list"}, {"status"}, {}}, shows: `\x1b[35m`,
		},
		"moved in one line more": {
			files: files{"wal/moved.json": `{"varve_moved":1,` + uuids + `,"to":` + e + `,"when":` + e + `}`},
			args:  [][]string{{"list"}, {"repair"}},
		},
		"migration": {
			files: files{"migrate.json": `{"varve_migration":1,` + uuids + `,"from":` + e + `,"state":` + e + `,"began":"2026-01-01T00:00:00Z"}`},
			args:  [][]string{{"list"}, {"status"}, {"verify"}, {"migrate", "--to", "DIR/other"}}, shows: `\x1b[35m`,
		},
		"settings": {
			files: files{"config.json": `{"varve":1,"at_limit":` + e + `,` + e + `:` + e + `}`},
			args:  [][]string{{"list"}, {"config"}, {"config", "get", "at_limit"}, {"config", "set", "auto_repair", "true"}, {"status"}, {"verify"}, {"repair"}}, shows: `\x1b[35m`,
		},
		"broken settings": {
			files: files{"config.json": evil.Name + `{"varve":1`},
			args:  [][]string{{"list"}, {"config"}, {"status"}, {"verify"}, {"repair"}},
		},
		"backup": {
			files: files{"../b/backup.json": `{"varve_backup":2,"store":` + e + `,"list":` + e + `}`, "../b/files.sha256": evil.Name + "\n"},
			args:  [][]string{{"restore", "DIR/b", "DIR/r"}, {"backup", "--check", "DIR/b"}},
		},
		"backup of another's settings": {
			files: files{"../b/backup.json": `{"varve_backup":2,"list":` + e + `,"config":{"at_limit":` + e + `},"damaged":[{"id":` + e + `,"why":` + e + `}]}`},
			args:  [][]string{{"restore", "DIR/b", "DIR/r"}, {"backup", "--check", "DIR/b"}},
		},
		"holder": {
			locks: true,
			args:  [][]string{{"put", "x", "--wait", "100ms"}, {"verify", "--wait", "100ms"}, {"flush", "--wait", "100ms"}}, shows: `\x1b[35m`,
		},
		"service": {
			env:  []string{"VARVE_EMBED_URL=" + service.URL, "VARVE_EMBED_MODEL=" + strings.Map(printing, evil.Text), "VARVE_EMBED_KEY=k"},
			args: [][]string{{"put", "text"}, {"search", "words"}, {"reindex"}, {"reindex", "--missing"}}, shows: `\x1b[35m`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			made := &inProcess{t, dir}
			made.ok("init", made.store())
			made.ok("put", "text", "--id", "a")
			for path, s := range c.files {
				writeFile(t, filepath.Join(made.store(), path), s)
			}
			if c.locks {
				for _, lock := range []string{"append.lock", "flush.lock"} {
					f, err := os.OpenFile(filepath.Join(made.store(), "wal", lock), os.O_RDWR, 0)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
						t.Fatal(err)
					}
				}
			}
			shown := false
			for _, args := range c.args {
				for _, more := range [][]string{nil, {"--json"}} {
					var all []string
					for _, arg := range args {
						all = append(all, strings.ReplaceAll(arg, "DIR", dir))
					}
					cmd := exec.Command(memctl, append(all, more...)...)
					cmd.Dir = dir
					cmd.Env = append(append(os.Environ(), "VARVE_STORE="+made.store(), "TERM=xterm", "NO_COLOR="), c.env...)
					sent := onTerminal(t, cmd, "")
					if what := evil.Obeyed(sent); what != "" {
						t.Errorf("memctl %+q sends the terminal %s", append(all, more...), what)
					}
					shown = shown || strings.Contains(sent, c.shows)
				}
			}
			if !shown {
				t.Errorf("nothing says %s: this case shows nothing", c.shows)
			}
		})
	}
}

// printing leaves a NUL out, which no environment can hold.
func printing(r rune) rune {
	if r == 0 {
		return -1
	}
	return r
}
