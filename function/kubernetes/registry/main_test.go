package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answers returns the status of a request to a registry.
func answers(t *testing.T, handler http.Handler, method, path string) int {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(method, path, strings.NewReader("")))
	return recorder.Code
}

func TestImagesArePushedAtOneOfTheAddressesOnly(t *testing.T) {
	registry := newRegistry(context.Background(), t.TempDir())
	const upload = "/v2/ocr/blobs/uploads/"
	if status := answers(t, registry, http.MethodPost, upload); status != http.StatusAccepted {
		t.Errorf("a push begins with status %d", status)
	}
	if status := answers(t, readOnly(registry), http.MethodPost, upload); status != http.StatusMethodNotAllowed {
		t.Errorf("a push where images are pulled: status %d", status)
	}
	if status := answers(t, readOnly(registry), http.MethodGet, "/v2/"); status != http.StatusOK {
		t.Errorf("a pull begins with status %d", status)
	}
}
