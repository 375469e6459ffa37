package main

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/memorytool"
)

func main() {
	dir := flag.String("store", "storage", "the folder of the store")
	folder := flag.String("folder", "", "the folder of notes that is the model's memory; all notes by default")
	model := flag.String("model", "claude-sonnet-4-5", "the model")
	demo := flag.Bool("demo", false, "run without the API: the program itself plays the model")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := start(ctx, *dir, *folder, *model, *demo, strings.Join(flag.Args(), " ")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start(ctx context.Context, dir, folder, model string, demo bool, prompt string) (err error) {
	st, err := varve.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := st.Close(); err == nil {
			err = cerr
		}
	}()
	tool, err := memorytool.New(st.Notes(), memorytool.Options{Folder: folder})
	if err != nil {
		return err
	}
	var opts []option.RequestOption // by default the key is in ANTHROPIC_API_KEY
	if demo {
		api := httptest.NewServer(newFakeAPI(remembering(prompt)...))
		defer api.Close()
		opts = append(opts, option.WithBaseURL(api.URL), option.WithAPIKey("none"))
	}
	answer, err := run(ctx, anthropic.NewClient(opts...), model, tool, prompt)
	if err != nil {
		return err
	}
	for _, block := range answer.Content {
		if block.Type == "text" {
			fmt.Println(block.Text)
		}
	}
	return nil
}
