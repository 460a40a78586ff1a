"""Reconciles sites: an endpoint of a ReconcileHook, with the standard library alone.

    python3 endpoint.py 8089

takes every call. If the hook has a `secretRef`, give the same secret here, and
calls without a good signature are refused:

    HOOK_SECRET=s3cret python3 endpoint.py 8089
"""

import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ.get("HOOK_SECRET", "").encode()


def reconcile(site, attempt):
    """The logic: what the status of this site should say."""
    spec, generation = site["spec"], site["metadata"]["generation"]
    if spec["host"].endswith(".invalid"):
        return {"error": {"message": f"nobody can serve {spec['host']}: delete the site and add it again under another host", "retryable": False}}
    ready = {"type": "Ready", "status": "True", "reason": "Served", "message": "", "observedGeneration": generation}
    return {
        "status": {"observedGeneration": generation, "readyReplicas": spec["replicas"], "conditions": [ready]},
        "requeueAfter": "10m",
    }


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if not self.is_genuine(body):
            return self.answer(401, {"error": {"message": "the signature is wrong"}})
        call = json.loads(body)
        self.answer(200, reconcile(call["object"], call["attempt"]))

    def is_genuine(self, body):
        """Signed with our secret, in the last five minutes."""
        timestamp = self.headers.get("tidegate-timestamp", "0")
        expected = "v1=" + hmac.new(SECRET, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        is_recent = timestamp.isdigit() and abs(time.time() - int(timestamp)) < 300
        return not SECRET or (is_recent and hmac.compare_digest(expected, self.headers.get("tidegate-signature", "")))

    def answer(self, code, answer):
        body = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8089
    print(f"waiting for calls at http://127.0.0.1:{port}", flush=True)
    ThreadingHTTPServer(("127.0.0.1", port), Endpoint).serve_forever()
