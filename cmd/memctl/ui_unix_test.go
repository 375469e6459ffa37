//go:build unix

package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
)

// memctl ui prints a link whose token opens the page, gives the browser a file that only the user can read and no token
// in its arguments, and ends with its terminal; the file is removed, and the token is valid no more.
func TestUI(t *testing.T) {
	proofs.ManyProcesses(t, "memctl ui is a process")
	t.Parallel()
	dir := t.TempDir()
	memctl := memctlBinary(t)
	browser := filepath.Join(dir, "browser")
	if err := os.WriteFile(browser,
		[]byte("#!/bin/sh\necho \"$1\" > "+dir+"/opened.part\nmv "+dir+"/opened.part "+dir+"/opened\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	for _, by := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		_ = os.Remove(filepath.Join(dir, "opened"))
		cmd := exec.Command(memctl, "ui", "--store", filepath.Join(dir, "s"))
		cmd.Env = append(os.Environ(), "BROWSER="+browser, "HOME="+dir, "VARVE_STORE=", "TMPDIR="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		line, err := bufio.NewReader(out).ReadString('\n')
		link := strings.TrimSpace(line)
		base, token, ok := strings.Cut(link, "/#token=")
		if err != nil || !ok || !strings.HasPrefix(base, "http://127.0.0.1:") {
			t.Fatalf("%q, %v", line, err)
		}
		ask := func(token string) int {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/page/list", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			return res.StatusCode
		}
		if got := ask(token); got != http.StatusOK {
			t.Errorf("the token of the link: %d", got)
		}
		if got := ask(token + "x"); got != http.StatusUnauthorized {
			t.Errorf("another token: %d", got)
		}
		var opened []byte
		for until := time.Now().Add(20 * time.Second); opened == nil && time.Now().Before(until); {
			opened, _ = os.ReadFile(filepath.Join(dir, "opened"))
		}
		file := strings.TrimSpace(string(opened))
		if file == "" || strings.Contains(file, token) {
			t.Fatalf("the browser got %q", file)
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", info, err)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), link) {
			t.Errorf("%s, %v", text, err)
		}
		_ = cmd.Process.Signal(by)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", by, err)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%v: the file with the link is left: %v", by, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// Ctrl-C goes to all programs of the terminal, and closes the page, not the browser that memctl ui has started.
func TestUIBrowserStays(t *testing.T) {
	proofs.ManyProcesses(t, "memctl ui is a process")
	t.Parallel()
	dir := t.TempDir()
	memctl := memctlBinary(t)
	browser := filepath.Join(dir, "browser")
	script := "#!/bin/sh\necho $$ > " + dir + "/pid.part\nmv " + dir + "/pid.part " + dir + "/pid\nexec sleep 120\n"
	if err := os.WriteFile(browser, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(memctl, "ui", "--store", filepath.Join(dir, "s"))
	cmd.Env = append(os.Environ(), "BROWSER="+browser, "HOME="+dir, "VARVE_STORE=", "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell starts it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var text []byte
	for until := time.Now().Add(20 * time.Second); text == nil && time.Now().Before(until); {
		text, _ = os.ReadFile(filepath.Join(dir, "pid"))
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	group, err := syscall.Getpgid(pid)
	if err != nil || group == cmd.Process.Pid {
		t.Errorf("the browser is in group %d, memctl in %d: %v", group, cmd.Process.Pid, err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the browser has ended: %v", err)
	}
}
