package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// most is how large the program of a release may be for Linux on amd64. It has 39.4 MiB: 24.3 before memctl serve,
// which brings the HTTP server and the client of Prometheus, 27.3 before the page for people, which brings
// html/template and goldmark, 31.8 before copies elsewhere, which bring the clients of S3 (minio-go) and of PostgreSQL
// (pgx, 3.9 of it). The margin is for features, not for another module: look at what grew before this is raised.
const most = 42 << 20

func TestSizeOfTheProgram(t *testing.T) {
	t.Parallel()
	proofs.ManyProcesses(t, "memctl is built as for a release")
	path := filepath.Join(t.TempDir(), "memctl")
	// A release has -trimpath too. It saves some kilobytes, and would make this test compile every package.
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d bytes", info.Size()); info.Size() > most {
		t.Errorf("%d bytes, at most %d are wanted", info.Size(), most)
	}
}
