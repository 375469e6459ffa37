//go:build model

package embed

import (
	"bufio"
	"context"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

var modelDir = flag.String("model-dir", "", "the folder that the packages of testdata/model/server.cjs were installed into")

// TestRealModel asks a real model over both protocols:
//
//	go test -tags model ./vector/embed -args -model-dir DIR
//
// The top of the script says which packages go into DIR, and how.
func TestRealModel(t *testing.T) {
	cmd := exec.Command("node", "testdata/model/server.cjs", *modelDir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal("the model's server needs Node.js:", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the model does not start; how to install it stands in testdata/model/server.cjs")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, path := range []string{"/v1", "/api"} {
		e, err := New(Options{URL: strings.TrimSpace(lines.Text()) + path, Model: "universal-sentence-encoder-lite", Dimensions: 512})
		if err != nil {
			t.Fatal(err)
		}
		list, err := e.Embed(ctx, []string{"the cat sat on the mat", "a kitten rests on the rug", "interest rates were raised again"})
		if err != nil {
			t.Fatal(err)
		}
		if near, far := dot(list[0], list[1]), dot(list[0], list[2]); near < far+0.1 {
			t.Errorf("%s: cat and kitten %.3f, cat and interest %.3f", path, near, far)
		}
	}
}

func dot(a, b []float32) (sum float32) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
