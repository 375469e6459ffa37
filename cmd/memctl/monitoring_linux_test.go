package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/memorystores"
)

// monitoring is the folder of the rules and the dashboard.
func monitoring() string { return filepath.Join("..", "..", "packaging", "monitoring") }

// ofPrometheus returns a program of Prometheus.
func ofPrometheus(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		const why = "prometheus is not installed; on Debian: apt-get install prometheus"
		if os.Getenv("VARVE_CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return path
}

// TestAlertRules: the rules are valid, and fire after their times; the dashboard asks for metrics that there are.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool := ofPrometheus(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "varve.rules.yml"}, {"test", "rules", "varve.rules.test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = monitoring()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// prometheus is a server that reads metrics each second, and rules whose times are shortened to seconds.
type prometheus struct {
	t      *testing.T
	url    string
	client *http.Client
}

// startPrometheus starts a server with a job for each memctl serve.
func startPrometheus(t *testing.T, servers map[string]*webServer) *prometheus {
	t.Helper()
	program, dir := ofPrometheus(t, "prometheus"), t.TempDir()
	rules, err := os.ReadFile(filepath.Join(monitoring(), "varve.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	rules = regexp.MustCompile(`(?m)for: \w+$`).ReplaceAll(rules, []byte("for: 1s"))
	rules = bytes.ReplaceAll(rules, []byte("[5m]"), []byte("[10s]"))
	writeFile(t, filepath.Join(dir, "rules.yml"), string(rules))
	config := "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\n" +
		"scrape_configs:\n"
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := servers[name]
		addr := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
		config += fmt.Sprintf("  - job_name: %s\n    authorization: {credentials: %s}\n    static_configs: [{targets: [%q]}]\n",
			name, s.token, addr)
	}
	writeFile(t, filepath.Join(dir, "prometheus.yml"), config)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=error")
	var said lockedBuffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return &prometheus{t, "http://" + addr, &http.Client{Timeout: 5 * time.Second}}
}

// get returns the member data of an answer of the API.
func (p *prometheus) get(path string, data any) error {
	res, err := p.client.Get(p.url + path)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, &struct{ Data any }{data})
}

// metrics returns what Prometheus has read last of a job, a line for each number that an alert is about.
func (p *prometheus) metrics(job string) string {
	var d struct {
		Result []struct {
			Metric map[string]string
			Value  []any
		}
	}
	query := `{job="` + job + `",__name__=~"up|varve_(backlog|damaged|disk|backup|embed|slowed|copy).*"}`
	if err := p.get("/api/v1/query?query="+url.QueryEscape(query), &d); err != nil {
		return err.Error()
	}
	all := []string{}
	for _, r := range d.Result {
		all = append(all, fmt.Sprint(r.Metric["__name__"], r.Value))
	}
	return strings.Join(all, "\n")
}

// firing returns the alerts that fire, as "name job".
func (p *prometheus) firing() []string {
	var d struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}
	if err := p.get("/api/v1/alerts", &d); err != nil {
		return nil // it is starting
	}
	all := []string{}
	for _, a := range d.Alerts {
		if a.State == "firing" {
			all = append(all, a.Labels["alertname"]+" "+a.Labels["job"])
		}
	}
	slices.Sort(all)
	return all
}

// TestAlerts: a real Prometheus reads stores in the states that the rules are about, and each alert fires for its store
// alone.
func TestAlerts(t *testing.T) {
	proofs.ManyProcesses(t, "Prometheus and seven servers")
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("only root can mount the disk that gets full; TestAlertRules has the rules")
		return
	}
	ofPrometheus(t, "prometheus")
	servers := map[string]*webServer{}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	remember := func(s *webServer, n int, text string) error {
		_, err := s.call(ctx, client, "remember", map[string]any{"text": fmt.Sprintf("%d: %s", n, text),
			"session": fmt.Sprint("s", n)})
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// store makes a store with a backup.
	store := func(dir string, backup bool) {
		t.Helper()
		c := &inProcess{t, dir}
		at := filepath.Join(dir, "s")
		c.ok("init", at)
		c.ok("put", "something to keep", "--store", at, "-q")
		if backup {
			c.ok("backup", filepath.Join(at, "backups", "first"), "--store", at)
		}
	}
	held := func(dir string) *flock.Flock {
		t.Helper()
		lock := flock.New(filepath.Join(dir, "s", "wal", "flush.lock"))
		ok, err := lock.TryLock()
		if must(err); !ok {
			t.Fatal("flush.lock is taken")
		}
		// A lock that nothing refers to any more is given up when the collector closes its file.
		t.Cleanup(func() { _ = lock.Unlock() })
		return lock
	}

	sound := t.TempDir()
	store(sound, true)
	servers["sound"] = startServing(t, sound)

	none := t.TempDir()
	store(none, false)
	servers["nobackup"] = startServing(t, none)

	disk := t.TempDir()
	must(syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=40m"))
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	store(disk, true)
	servers["disk"] = startServing(t, disk)
	fillBytes(t, disk)

	embeds := t.TempDir()
	store(embeds, true)
	servers["embedder"] = startServingIn(t, embeds, []string{"VARVE_EMBED_URL=http://127.0.0.1:1", "VARVE_EMBED_MODEL=m"})
	must(remember(servers["embedder"], 1, "a text that wants a vector"))

	// A store with a copy elsewhere, which is taken away.
	copied := t.TempDir()
	store(copied, true)
	place := filepath.Join(copied, "elsewhere")
	servers["copy"] = startServingIn(t, copied, []string{"XDG_STATE_HOME=" + filepath.Join(copied, "state")})
	add := exec.Command(memctlBinary(t), "remote", "add", "file://"+place, "--store", filepath.Join(copied, "s"))
	add.Env = servers["copy"].env
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("remote add: %v\n%s", err, out)
	}
	must(os.Rename(place, place+".away"))

	// Damage in the log that is not in files yet, which nothing else has.
	damaged := t.TempDir()
	store(damaged, true)
	servers["damaged"] = startServing(t, damaged)
	lock := held(damaged)
	for i := range 5 {
		must(remember(servers["damaged"], i, "a text with a mark"))
	}
	servers["damaged"].end(syscall.SIGKILL)
	must(lock.Unlock())
	segment := filepath.Join(damaged, "s", "wal", "00000001.wal")
	b, err := os.ReadFile(segment)
	must(err)
	at := bytes.Index(b, []byte("2: a text with a mark"))
	if at < 0 {
		t.Fatal("the log does not have the text")
	}
	b[at] = '?'
	must(os.WriteFile(segment, b, 0o600))
	servers["damaged"].start()

	// Writers that do not stop, beside a flusher that cannot work: they are slowed.
	behind := t.TempDir()
	store(behind, true)
	(&inProcess{t, behind}).ok("config", "set", "backlog_bytes", fmt.Sprint(1<<20), "--store", filepath.Join(behind, "s"))
	slow := startServing(t, behind)
	servers["backlog"] = slow
	_, o := slow.api(ctx, client, "GET", "", nil)
	list, _ := o["data"].([]any)
	if len(list) != 1 {
		t.Fatal(o)
	}
	its, _ := list[0].(map[string]any)
	memories := fmt.Sprint("/", its["id"], "/memories")
	write := func(path, content string) (int, map[string]any) {
		return slow.api(ctx, client, "POST", memories, map[string]any{"path": path, "content": content})
	}
	if status, o := write("/first.md", "the first note needs flush.lock"); status != http.StatusOK {
		t.Fatal(status, o)
	}
	held(behind)
	text := make([]byte, memorystores.MostContent/2) // which does not get smaller in the log
	rand.NewChaCha8([32]byte{}).Read(text)
	for i := range 4 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ { // it waits, or is refused in the end
				write(fmt.Sprintf("/%d/%d.md", i, n), fmt.Sprintf("%d %x", n, text)[:2*len(text)])
			}
		})
	}

	p := startPrometheus(t, servers)
	want := []string{"VarveBacklog backlog", "VarveBackupOld nobackup", "VarveCopyBehind copy", "VarveDamaged damaged",
		"VarveDiskLow disk", "VarveEmbedderDown embedder", "VarveSlowed backlog"}
	seen := map[string]bool{}
	end := time.Now().Add(2 * time.Minute)
	for len(seen) < len(want) && time.Now().Before(end) {
		for _, a := range p.firing() {
			seen[a] = true
		}
		time.Sleep(200 * time.Millisecond) // until Prometheus has asked again
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want) {
		t.Errorf("these alerts have fired:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		for _, alert := range want {
			if _, job, _ := strings.Cut(alert, " "); !seen[alert] {
				t.Errorf("the metrics of %s:\n%s", job, p.metrics(job))
			}
		}
	}

	// Each metric that the rules and the dashboard name is one that a server has.
	var names []string
	must(p.get("/api/v1/label/__name__/values", &names))
	if len(names) < 20 {
		t.Errorf("only %d metrics: %q", len(names), names)
	}
	for _, name := range []string{"varve.rules.yml", "dashboard.json"} {
		text, err := os.ReadFile(filepath.Join(monitoring(), name))
		must(err)
		for _, metric := range regexp.MustCompile(`(varve|mcp)_[a-z_]+[a-z]`).FindAllString(string(text), -1) {
			if !slices.Contains(names, metric) {
				t.Errorf("%s: no server has %s", name, metric)
			}
		}
	}
	stop()
	for name, s := range servers {
		if name == "backlog" {
			continue // its flusher is held
		}
		if code := s.end(syscall.SIGTERM); code != cli.CodeOK && name == "sound" {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
}
