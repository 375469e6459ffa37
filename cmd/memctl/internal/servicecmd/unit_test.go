package servicecmd

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write packaging/systemd")

// The unit of the packages is the one that memctl service install writes, with the path of the store
// taken from the name of the instance.
func TestPackagedUnit(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "..", "packaging", "systemd", "user", "memctl-watch@.service")
	u := unit{store: "%f", memctl: "/usr/bin/memctl"}
	want := "# systemctl --user enable --now memctl-watch@$(systemd-escape --path STORE).service\n" + u.text()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("%s is not what go test ./cmd/memctl/internal/servicecmd -run TestPackagedUnit -update writes: %v", path, err)
	}
	verified(t, "memctl-watch@home-me-storage.service", want)
}

// The unit of memctl serve is confined as the other one is, and may listen.
func TestPackagedServer(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "packaging", "systemd", "user", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	text := read("memctl-serve@.service")
	want := strings.NewReplacer("memctl-watch", "memctl-serve", "adopt edits of its files", "serve it to agents",
		"watch --adopt", "serve", "RestrictAddressFamilies=none",
		"RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX").Replace(read("memctl-watch@.service"))
	if text != want {
		t.Errorf("%s\nwant:\n%s", text, want)
	}
	verified(t, "memctl-serve@home-me-storage.service", text)
}

// odd are paths in which something means something to systemd.
var odd = []string{"/srv/memory", "/home/me/my store", `/srv/a"b`, `/srv/a\b`, "/srv/100%f", "/srv/$HOME", "/srv/a;b", "/srv/#x", "/srv/é", "/tmp/x", "/srv/it's"}

// Whatever is in a path, the unit has one line for each directive, and systemd takes the path for one
// word.
func TestUnitOfOddPaths(t *testing.T) {
	t.Parallel()
	for _, system := range []bool{false, true} {
		plain := unit{store: "/srv/memory", memctl: "/usr/bin/memctl", system: system, owner: "1000:1000"}
		for _, store := range odd {
			u := plain
			u.store = store
			if strings.Count(u.text(), "\n") != strings.Count(plain.text(), "\n") {
				t.Errorf("%s:\n%s", store, u.text())
			}
			verified(t, "memctl-watch-x.service", u.text())
		}
	}
	for _, bad := range []string{"/srv/a\nExecStart=/bin/sh", "/srv/\x1b[31m", "/srv/\xff"} {
		if printable(bad) {
			t.Errorf("%q is taken", bad)
		}
	}
}

// verified has systemd look at a unit, and for one of the system say how exposed it is.
func verified(t *testing.T, name, text string) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if os.Getenv("VARVE_CI") != "" {
			t.Fatal("systemd-analyze is missing: apt-get install systemd")
		}
		t.Log("systemd-analyze is missing: apt-get install systemd")
		return
	}
	path := filepath.Join(t.TempDir(), name)
	// The program must be there to be verified.
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "/usr/bin/memctl", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"verify", "--man=no", path}
	if strings.Contains(text, "WantedBy=default.target") {
		args = append([]string{"--user"}, args...)
	}
	cmd := exec.Command("systemd-analyze", args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v: %s\n%s", err, out, text)
	}
	if !strings.Contains(text, "ProtectSystem=strict") {
		return
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", path).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v: %s", err, out)
	}
}

// A name is the one that systemd-escape gives; a path that is too long has another.
func TestNames(t *testing.T) {
	t.Parallel()
	long := "/srv/" + strings.Repeat("x/", 200)
	for store, want := range map[string]string{
		"/home/me/my store": `memctl-watch-home-me-my\x20store.service`, "/srv/a-b": `memctl-watch-srv-a\x2db.service`,
		"/.hidden": `memctl-watch-\x2ehidden.service`, "/": "memctl-watch-.service",
	} {
		if got := nameOf(store); got != want {
			t.Errorf("%s: %s, want %s", store, got, want)
		}
	}
	if name := nameOf(long); len(name) > 100 || name == nameOf(long+"y") {
		t.Errorf("%s", name)
	}
	if _, err := exec.LookPath("systemd-escape"); err != nil {
		return
	}
	for _, store := range odd {
		out, err := exec.Command("systemd-escape", "--path", store).Output()
		if want := "memctl-watch-" + strings.TrimSpace(string(out)) + ".service"; err != nil || nameOf(store) != want {
			t.Errorf("%s: %s, systemd-escape gives %s, %v", store, nameOf(store), want, err)
		}
	}
}
