# SPDX-License-Identifier: MIT
"""mlff model fetch, from a server on this machine that does everything wrong. Usage: test_fetch.py MLFF GOLDEN_DIR"""
import hashlib
import http.server
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

from command_test import CommandTest

MLFF, GOLDEN_DIR = sys.argv[1], os.path.abspath(sys.argv[2])
MODEL = os.path.join(GOLDEN_DIR, "p03_mace_plain_l1.model")
with open(MODEL, "rb") as file:
    CONTENTS = file.read()
SHA256 = hashlib.sha256(CONTENTS).hexdigest()
SMALL_SIZE, SMALL_SHA256 = 32581838, "2ddb079cee0e131eaaf6912ba581b394551ead283e95c99cfe78c605d10b5736"
TEXT = b"no model at all\n" * 100
WATER = "3\n\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n"


class Handler(http.server.BaseHTTPRequestHandler):
    """The first folder of the path says what goes wrong."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        kind = self.path.split("/")[1]
        begin = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        with self.server.lock:
            self.server.seen.append((kind, begin))
        try:
            getattr(self, "serve_" + kind.replace("-", "_"), self.serve_missing)(begin)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has had enough

    def begin(self, status, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def send_file(self, contents, begin, end=None):
        """The file from `begin` on, at most up to `end`, whatever was promised."""
        if begin >= len(contents):
            return self.begin(416, Content_Range=f"bytes */{len(contents)}")
        range_header = {"Content_Range": f"bytes {begin}-{len(contents) - 1}/{len(contents)}"} if begin else {}
        self.begin(206 if begin else 200, Content_Length=len(contents) - begin, **range_header)
        self.wfile.write(contents[begin:end])
        self.wfile.flush()

    def serve_good(self, begin):
        self.send_file(CONTENTS, begin)

    def serve_text(self, begin):
        self.send_file(TEXT, begin)

    def serve_damaged(self, begin):
        self.send_file(CONTENTS[:5000] + bytes([CONTENTS[5000] ^ 1]) + CONTENTS[5001:], begin)

    def serve_truncated(self, begin):
        self.send_file(CONTENTS, begin, None if begin else len(CONTENTS) // 2)

    def serve_truncated_without_ranges(self, _):
        count = sum(kind == "truncated-without-ranges" for kind, _ in self.server.seen)
        self.send_file(CONTENTS, 0, len(CONTENTS) // 2 if count == 1 else None)

    def serve_wrong_range(self, begin):
        self.begin(206, Content_Range=f"bytes {begin + 1}-{len(CONTENTS) - 1}/{len(CONTENTS)}")

    def serve_stalled(self, begin):
        self.send_file(CONTENTS, begin, begin + 3000)
        self.server.release.wait(20)

    def serve_silent(self, _):
        self.server.release.wait(20)

    def serve_gentle(self, begin):
        """Slow enough for a second process to come."""
        self.begin(200, Content_Length=len(CONTENTS))
        self.wfile.write(CONTENTS[:1000])
        self.server.release.wait(20)
        self.wfile.write(CONTENTS[1000:])

    def serve_endless(self, _):
        self.begin(200)
        while True:
            self.wfile.write(bytes(1 << 20))

    def serve_endless_header(self, _):
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            self.wfile.write(b"X-More: " + b"x" * 1000 + b"\r\n")

    def serve_announcing(self, _):
        while True:
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)

    def serve_busy(self, begin):
        if sum(kind == "busy" for kind, _ in self.server.seen) == 1:
            return self.begin(503, Content_Length=0)
        self.send_file(CONTENTS, begin)

    def serve_missing(self, _):
        self.begin(404, Content_Length=0)

    def serve_moved(self, _):
        self.begin(302, Location="/good/" + self.path.split("/")[-1], Content_Length=5)
        self.wfile.write(b"moved")

    def serve_round(self, _):
        self.begin(302, Location=self.path)

    def serve_away(self, _):
        self.begin(302, Location=self.server.away)


class Fetch(CommandTest):
    def setUp(self):
        super().setUp()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.seen, self.server.lock, self.server.release = [], threading.Lock(), threading.Event()
        self.server.away = ""
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.server.release.set)
        self.models = self.path("models")
        self.environment = {**os.environ, "MLFF_MODELS": self.models, "HOME": self.folder}

    def address(self, kind, name="x.model"):
        return f"http://127.0.0.1:{self.server.server_port}/{kind}/{name}"

    def run_mlff(self, *arguments, **environment):
        return subprocess.run([MLFF, *arguments], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL, cwd=self.folder,
                              env={**self.environment, **environment})

    def fetch(self, kind, *options, name="water", sha256=SHA256, **environment):
        return self.run_mlff("model", "fetch", name, "--from", self.address(kind), *(("--sha256", sha256) if sha256 else ()), *options, **environment)

    def assert_fetched(self, result, name="water"):
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        entry = self.listed()[name]
        self.assertEqual((entry["sha256"], entry["size"]), (SHA256, len(CONTENTS)))
        with open(entry["path"], "rb") as file:
            self.assertEqual(file.read(), CONTENTS)
        self.assertEqual(self.parts(), [])

    def listed(self):
        return {entry["name"]: entry for entry in json.loads(self.run_mlff("model", "list", "--json", "-").stdout)["models"]}

    def left(self):
        """What is in the folder of the cache, but for its lock."""
        return sorted(name for name in os.listdir(self.models) if name != ".lock") if os.path.isdir(self.models) else []

    def parts(self):
        return [name for name in self.left() if name.endswith(".part")]

    def test_a_fetched_model_runs(self):
        result = self.fetch("good")
        self.assert_fetched(result)
        self.assertIn(self.address("good"), result.stdout)
        self.assertEqual(self.listed()["water"]["source"], self.address("good"))
        self.assertEqual(self.left(), ["index.json", f"water-{SHA256[:16]}.model"])
        water = self.path("w.xyz", WATER)
        by_name, by_path = (json.loads(self.run_mlff("eval", water, "--model", model, "--json", "-").stdout)["frames"] for model in ("water", MODEL))
        self.assertEqual(by_name, by_path)
        # Once more: nothing is downloaded. The same file under another name: the same.
        self.assertIn("already", self.fetch("good").stdout)
        self.assert_fetched(self.fetch("good", name="other"), "other")
        self.assertEqual(self.server.seen, [("good", 0)])
        # Another file is wanted under this name.
        self.assert_fails(self.fetch("text", sha256=hashlib.sha256(TEXT).hexdigest()), 2, "already", "--replace")
        document = json.loads(self.fetch("good", "--json", "-", "--replace").stdout)
        self.assertEqual((document["name"], document["sha256"], document["runnable"]), ("water", SHA256, True))

    def test_a_folder_and_redirects_on_this_machine(self):
        result = self.run_mlff("model", "fetch", "mh-1", "--accept-license", "--from", self.address("moved", ""))
        self.assert_fetched(result, "mh-1")
        self.assertIn("mace-mh-1.model", self.listed()["mh-1"]["source"])
        self.assertEqual(self.server.seen, [("moved", 0), ("good", 0)])

    def test_what_is_not_the_file_leaves_nothing(self):
        text_sha256 = hashlib.sha256(TEXT).hexdigest()
        for kind, sha256, words in (("damaged", SHA256, ("SHA-256", SHA256)), ("text", text_sha256, ("not stored",)), ("missing", SHA256, ("404",)),
                                    ("wrong-range", SHA256, ("another part",)), ("endless-header", SHA256, ()), ("announcing", SHA256, ()), ("round", SHA256, ("more than 10 times",))):
            with self.subTest(kind=kind):
                self.assert_fails(self.fetch(kind, "--retries", "0", sha256=sha256), 3, self.address(kind), *words)
                self.assertEqual(self.left(), [])
        # The table knows the size of this one.
        for kind, found in (("good", str(len(CONTENTS))), ("endless", f"more than {SMALL_SIZE}")):
            with self.subTest(kind=kind):
                self.assert_fails(self.fetch(kind, name="small", sha256=None), 3, f"has {found} bytes", str(SMALL_SIZE))
                self.assertEqual(self.left(), [])
        self.assertEqual(self.listed(), {})

    def test_a_download_that_ended_early_is_continued(self):
        half = len(CONTENTS) // 2
        self.assert_fails(self.fetch("truncated", "--retries", "0"), 3, "mlff model add FILE --name water", self.address("truncated"), SHA256)
        self.assertEqual((self.listed(), len(self.parts())), ({}, 1))
        self.assertEqual(os.path.getsize(os.path.join(self.models, self.parts()[0])), half)
        self.assert_fetched(self.fetch("good"))  # by another server
        self.assertEqual(self.server.seen, [("truncated", 0), ("good", half)])

        result = self.fetch("truncated", "--replace", name="again", sha256=SHA256)
        self.assert_fetched(result, "again")  # the cache has it under another name
        self.assertEqual(self.run_mlff("model", "remove", "water").returncode + self.run_mlff("model", "remove", "again").returncode, 0)
        self.server.seen.clear()
        result = self.fetch("truncated")  # within one command
        self.assert_fetched(result)
        self.assertIn(f"trying again from byte {half}", result.stdout)
        self.assertEqual(self.server.seen, [("truncated", 0), ("truncated", half)])

    def test_servers_without_ranges_and_busy_ones(self):
        self.assert_fetched(self.fetch("truncated-without-ranges"))
        self.assertEqual([begin for _, begin in self.server.seen], [0, len(CONTENTS) // 2])
        self.run_mlff("model", "remove", "water")
        self.assert_fetched(self.fetch("busy"))

    def test_a_part_that_does_not_fit(self):
        os.mkdir(self.models)
        for contents in (b"x" * 1000, b"x" * len(CONTENTS), b"x" * (len(CONTENTS) + 1)):
            with open(os.path.join(self.models, f".water-{SHA256[:16]}.part"), "wb") as file:
                file.write(contents)
            self.assert_fetched(self.fetch("good"))
            self.run_mlff("model", "remove", "water")

    def test_stalled_servers(self):
        for kind, size, patience in (("stalled", 3000, "1"), ("silent", 0, "0.4")):
            begin = time.monotonic()
            self.assert_fails(self.fetch(kind, "--timeout", patience, "--retries", "0"), 3, f"sent nothing for {patience} s")
            self.assertLess(time.monotonic() - begin, 10)
            self.assertEqual([os.path.getsize(os.path.join(self.models, name)) for name in self.left()], [size] if size else [])
            for name in self.left():
                os.remove(os.path.join(self.models, name))

    def test_addresses_that_are_refused(self):
        """Before any connection: nobody is asked for these names."""
        for away in ("http://mlff.invalid/x.model", "file:///etc/passwd", "ftp://127.0.0.1/x", "//mlff.invalid/x.model", "http://127.0.0.1@mlff.invalid/", "http://localhost.mlff.invalid/x",
                     "http:\\\\mlff.invalid/x"):
            self.server.away = away
            self.assert_fails(self.fetch("away"), 3, "redirects where mlff does not follow")
        for address in ("http://mlff.invalid/x.model", "file://" + MODEL, MODEL, "ftp://mlff.invalid/x", "https://user:secret@mlff.invalid/x", "https://mlff.invalid/a b", "https://", "-o" + self.path("stolen")):
            self.assert_fails(self.run_mlff("model", "fetch", "water", "--sha256", SHA256, "--from=" + address), 2, "address")
        self.assertEqual(self.left(), [])

    def test_nothing_is_taken_from_a_shell_or_a_file(self):
        self.path(".curlrc", f'output = "{self.path("stolen")}"\nlocation\n')
        self.assert_fails(self.fetch("missing;touch$IFS'stolen'&&$(touch$IFS@stolen)"), 3, "404")
        self.assert_fetched(self.fetch("good", http_proxy="http://127.0.0.1:1", all_proxy="http://127.0.0.1:1"))
        self.assertNotIn("stolen", os.listdir(self.folder))

    def test_two_at_once(self):
        command = [MLFF, "model", "fetch", "water", "--from", self.address("gentle"), "--sha256", SHA256]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment) for _ in range(3)]
        time.sleep(0.5)
        self.server.release.set()
        outputs = [process.communicate(timeout=20) + (process.returncode,) for process in processes]
        self.assertEqual([(error, code) for _, error, code in outputs], [("", 0)] * 3)
        self.assertEqual(self.server.seen, [("gentle", 0)])
        self.assertEqual(self.left(), ["index.json", f"water-{SHA256[:16]}.model"])

    def test_ctrl_c_keeps_the_part(self):
        command = [MLFF, "model", "fetch", "water", "--from", self.address("stalled"), "--sha256", SHA256]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        for _ in range(200):
            if self.parts() and os.path.getsize(os.path.join(self.models, self.parts()[0])) == 3000:
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=10)
        self.assertEqual((process.returncode, error.count("\n")), (130, 1), error)
        self.assertIn("continues", error)
        self.assert_fetched(self.fetch("good"))
        self.assertEqual(self.server.seen[-1], ("good", 3000))

    def test_licences(self):
        arguments = ("model", "fetch", "omat-0-small", "--from", self.address("good"))
        self.assert_fails(self.run_mlff(*arguments), 2, "ASL", "--accept-license")
        self.assertEqual((self.server.seen, self.left()), ([], []))
        for answer, code in ((b"no\n", 2), (b"yes\n", 0)):
            ours, theirs = pty.openpty()
            process = subprocess.Popen([MLFF, *arguments], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=self.environment)
            os.write(ours, answer)
            output, _ = process.communicate(timeout=20)
            self.assertEqual(process.returncode, code)
            self.assertIn(b"Academic Software License", output)
            os.close(ours)
            os.close(theirs)
        # No SHA-256 is known: it is shown and recorded, and another file is noticed.
        self.assertIn(SHA256, output.decode())
        entry = self.listed()["omat-0-small"]
        self.assertEqual((entry["sha256"], entry["licence"], entry["theory"]), (SHA256, "ASL", "PBE+U"))
        other = CONTENTS + b"\0"  # a zip archive may have that behind it, or not: then it is refused
        Handler.serve_other = lambda handler, begin: handler.send_file(other, begin)
        again = self.run_mlff(*arguments[:-1], self.address("other"), "--accept-licence", "--replace")
        self.assertTrue(again.returncode == 3 or "not the file that had this name" in again.stdout, again.stdout + again.stderr)
        self.assertIn("omat-0-small", self.listed())

    def test_without_curl_or_network(self):
        os.mkdir(self.path("empty"))
        for name in ("small", "mp-0-small"):
            result = self.run_mlff("model", "fetch", name, PATH=self.path("empty"))
            self.assert_fails(result, 3, "curl", SMALL_SHA256, "2023-12-10-mace-128-L0_energy_epoch-249.model", f"mlff model add FILE --name {name}")
        self.server.shutdown()
        self.server.server_close()
        self.assert_fails(self.fetch("good"), 3, "cannot reach 127.0.0.1", SHA256, "mlff model add FILE --name water")
        self.assertEqual(self.left(), [])

    def test_the_list_and_names_that_are_not_here(self):
        listed = self.run_mlff("model", "fetch")
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))
        models = {model["name"]: model for model in json.loads(self.run_mlff("model", "fetch", "--json", "-").stdout)["models"]}
        for name in ("small", "medium", "large", "off23-small", "off23-medium", "off23-large", "mpa-0-medium"):
            self.assertIn(name, listed.stdout)
            self.assertIn(models[name]["licence"], ("MIT", "ASL"))
        self.assertEqual((models["small"]["sha256"], models["small"]["size"]), (SMALL_SHA256, SMALL_SIZE))
        self.assertIsNone(models["mh-1"]["sha256"])
        water = self.path("w.xyz", WATER)
        for name in ("small", "mp-0-small"):
            for command in (("eval", water, "--model", name), ("eval", water, "--model", name + "+zbl"), ("model", "info", name), ("plan", water, "--model", name)):
                self.assert_fails(self.run_mlff(*command), 3, f"mlff model fetch {name}", "32.6 MB", "MIT", models["small"]["address"], f"mlff model add FILE --name {name}")
        self.assert_fails(self.run_mlff("eval", water, "--model", "smal"), 3, "did you mean 'small'?")
        self.assert_fails(self.run_mlff("model", "fetch", "meduim"), 2, "did you mean 'medium'?")
        self.assert_fails(self.run_mlff("model", "fetch", "nonsense", "--from", self.address("good")), 2, "--sha256")
        self.assert_fails(self.run_mlff("model", "fetch", "builtin", "--from", self.address("good"), "--sha256", SHA256), 2, "builtin")
        self.assert_fails(self.run_mlff("model", "fetch", "../x", "--from", self.address("good"), "--sha256", SHA256), 2, "../x")
        self.assert_fails(self.fetch("good", name="small"), 2, SMALL_SHA256)
        self.assert_fails(self.fetch("good", sha256="abc"), 2, "64 hexadecimal digits")
        self.assertEqual(self.server.seen, [])
        # A file that was brought some other way.
        added = self.run_mlff("model", "add", MODEL, "--name", "small")
        self.assertEqual(added.returncode, 0)
        self.assertIn("not the released model 'small'", added.stdout)
        self.assert_fails(self.run_mlff("model", "fetch", "small"), 2, "already", "--replace")


if __name__ == "__main__":
    if shutil.which("curl") is None:
        print("skipped: there is no curl")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
