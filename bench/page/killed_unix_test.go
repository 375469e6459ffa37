//go:build unix

package page

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/varve-db/varve"
)

// ui is memctl ui as a process.
type ui struct {
	cmd         *exec.Cmd
	addr, token string
}

// startUI starts memctl ui with a store and an address.
func startUI(t *testing.T, memctl, store, addr string) *ui {
	t.Helper()
	cmd := exec.Command(memctl, "ui", "--no-open", "--store", store, "--addr", addr)
	cmd.Env = append(os.Environ(), "VARVE_STORE=", "HOME="+filepath.Dir(store))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	base, token, ok := strings.Cut(strings.TrimSpace(line), "/#token=")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	return &ui{cmd, strings.TrimPrefix(base, "http://"), token}
}

// memctl ui is killed while a form is open, and started again: what was entered stays, and is saved with the new token.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	memctl := filepath.Join(dir, "memctl")
	build := exec.Command("go", "build", "-o", memctl, "./cmd/memctl")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	store := filepath.Join(dir, "s")
	st, err := varve.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "before"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	first := startUI(t, memctl, store, "127.0.0.1:0")
	b := (&site{t: t, addr: first.addr}).newTabAs(first.token)
	b.open("edit?id=a")
	b.do(chromedp.SetValue("textarea[name=content]", "after", chromedp.ByQuery))
	if err := first.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	b.text("not connected")
	b.press("Save")
	b.text("memctl ui --addr " + first.addr)
	second := startUI(t, memctl, store, first.addr)
	b.text("The server does not know this token")
	b.press("Save")
	b.do(chromedp.WaitVisible("#sign-in"))
	b.do(chromedp.SendKeys("#token", "http://"+second.addr+"/#token="+second.token, chromedp.ByQuery))
	b.click("#token-form button")
	b.until(`document.querySelector('textarea').value === 'after'`)
	b.press("Save")
	b.text("Saved as version")
	b.until(`document.querySelector('#live').textContent === 'live'`)
	_ = second.cmd.Process.Signal(os.Interrupt)
	if err := second.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if st, err = varve.Open(context.Background(), store, nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	if m, err := st.Get(t.Context(), "a"); err != nil || m.Content != "after" {
		t.Errorf("%q, %v", m.Content, err)
	}
	b.sound("Failed to load resource")
}
