"""What does the page say, in English and in Japanese?

One table: its own words, and the meanings of the product's codes (``code_words``). Sentences that the product makes stay English,
and are marked as such. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from schemas.demands import Measuring
from services.router.http.page.code_words import CODES

Language = Literal["en", "ja"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

WORDS: dict[str, tuple[str, str]] = {
    # The page
    "title": ("Headrace", "Headrace"),
    "skip": ("Skip to the content", "本文へ移動"),
    "language": ("Language", "言語"),
    "theme": ("Light or dark", "明るさの切り替え"),
    "theme_light": ("Light", "明るい"),
    "theme_dark": ("Dark", "暗い"),
    "theme_auto": ("As the system", "システムに合わせる"),
    "reload": ("Reload", "再読み込み"),
    "live": ("live", "更新中"),
    "connecting": ("connecting …", "接続中 …"),
    "offline": (
        "not connected since {}: what is shown is from then. Trying again …",
        "{} に切断。表示はその時点のものです。再接続中 …",
    ),
    "no_scripts": (
        "Without scripts this page shows one moment, and nothing can be asked here.",
        "スクリプトが無効のため、この画面はある時点の表示です。質問は送れません。",
    ),
    "starting": ("The router is not ready yet", "ルーターはまだ準備中です"),
    "close": ("Close", "閉じる"),
    "back": ("Back to the page", "画面へ戻る"),
    "unknown": ("unknown", "不明"),
    "unit_s": ("{} s", "{} 秒"),
    "unit_min": ("{} min", "{} 分"),
    "unit_h": ("{} h", "{} 時間"),
    # Sign in
    "sign_in": ("Sign in", "サインイン"),
    "sign_out": ("Sign out", "サインアウト"),
    "sign_in_why": (
        "This router asks for one of its keys. It is kept in a cookie until the browser is closed.",
        "このルーターの利用にはキーが必要です。キーはブラウザーを閉じるまでクッキーに保存されます。",
    ),
    "key": ("Key", "キー"),
    "key_unknown": ("This key is not known here.", "このキーは登録されていません。"),
    "too_many_tries": (
        "Too many wrong keys came from here. Try again in {} s.",
        "誤ったキーの入力が続いたため、{} 秒後に再度お試しください。",
    ),
    # Ask
    "ask": ("Ask", "質問"),
    "prompt": ("Prompt", "プロンプト"),
    "model": ("Model", "モデル"),
    "model_auto": ("auto: the router chooses", "auto: ルーターが選択"),
    "send": ("Send", "送信"),
    "compare": ("Compare all", "すべてで比較"),
    "judge": ("let a model judge", "モデルに判定させる"),
    "stop": ("Stop", "停止"),
    "answer": ("Answer", "回答"),
    "as_written": ("As written", "元のテキスト"),
    "code": ("Code", "コード"),
    "table": ("Table", "表"),
    "good": ("Good answer", "良い回答"),
    "bad": ("Bad answer", "悪い回答"),
    "best": ("This one is best", "これが一番良い"),
    "thanks": ("Stored as a judgement, thank you.", "評価を記録しました。"),
    "starts_in": ("starts in about", "開始まで約"),
    "start_unknown": ("start unknown", "開始は不明"),
    "place": ("place", "順番"),
    "restarted": ("started over:", "やり直し:"),
    "predicted": ("predicted", "予測"),
    "tokens_s": ("tokens/s", "トークン/秒"),
    "left_out": ("Left out", "対象外"),
    "thinking": ("Thinking", "思考"),
    "verdict_better": ("{} finds {} better than {}", "{} の判定: 「{}」が「{}」より良い"),
    "verdict_tie": ("{} finds {} and {} equally good", "{} の判定: 「{}」と「{}」は同等"),
    "verdict_none": ("No verdict on {} and {}", "「{}」と「{}」の判定なし"),
    "failed_to_send": ("The router could not be reached.", "ルーターに接続できません。"),
    # Fleet
    "fleet": ("Machines", "マシン"),
    "fleet_none": ("No machine has reported yet.", "まだマシンがありません。"),
    "fleet_next": (
        "Start a model server (Ollama, LM Studio, llama-server, vLLM) and run {} beside it. For other machines, run {} here: "
        "it prints the line to run there.",
        "モデルサーバー (Ollama、LM Studio、llama-server、vLLM) を起動し、同じマシンで {} を実行してください。"
        "別のマシンを加えるには、ここで {} を実行すると、そのマシンで実行する 1 行が表示されます。",
    ),
    "until": ("until", "再開:"),
    "until_resumed": ("until it is resumed", "再開の操作まで"),
    "machine": ("Machine", "マシン"),
    "state": ("State", "状態"),
    "models": ("Models", "モデル"),
    "loaded": ("loaded", "ロード済み"),
    "not_loaded": ("not loaded", "未ロード"),
    "residency_unknown": ("loaded or not: unknown", "ロード状態は不明"),
    "slots": ("Free slots", "空きスロット"),
    "of": ("of", "/"),
    "load": ("Used by others", "他の負荷"),
    "next_slot": ("Next slot", "次の空き"),
    "now": ("now", "今すぐ"),
    "action": ("Action", "操作"),
    "pause": ("Pause", "一時停止"),
    "pause_hour": ("Pause 1 h", "1 時間停止"),
    "resume": ("Resume", "再開"),
    "models_more": ("more", "件"),
    # Queue
    "queue": ("Waiting", "待ち行列"),
    "queue_none": ("Nothing waits.", "待っているタスクはありません。"),
    "running": ("Running", "実行中"),
    "running_none": ("Nothing runs.", "実行中のタスクはありません。"),
    "task": ("Task", "タスク"),
    "waits_for": ("Waits for", "待ち先"),
    "reason": ("Reason", "理由"),
    "starts": ("Starts in", "開始まで"),
    "waited": ("Waited", "待ち時間"),
    "ran": ("Running for", "実行時間"),
    "ends": ("Ends in", "終了まで"),
    "soon": ("less than 1 s", "1 秒未満"),
    "late": ("{} longer than predicted", "予測を {}超過"),
    # Decisions
    "decisions": ("Decisions", "判断"),
    "decisions_none": ("Nothing was decided yet.", "まだ判断はありません。"),
    "decisions_next": (
        "Ask something above, or give a client this address: with {} for OpenAI's, as it is for Ollama's and Anthropic's.",
        "上で質問するか、このアドレスをクライアントに設定してください。OpenAI 用は末尾に {} を付け、"
        "Ollama 用と Anthropic 用はそのままです。",
    ),
    "when": ("When", "時刻"),
    "domain": ("Domain", "分野"),
    "choice": ("Choice", "選択"),
    "why": ("Why?", "詳細"),
    "why_of": ("Why was this decided?", "なぜこの判断になったのか"),
    "copy_id": ("Copy the id", "ID をコピー"),
    "copied": ("Copied", "コピーしました"),
    "story": ("What happened", "経過"),
    "candidates": ("Candidates, the seconds of each part", "候補と各部分の秒数"),
    "losing": ("Left out, and why", "対象外とその理由"),
    "words": ("In words", "文章で"),
    "chosen": ("chosen", "選択"),
    "cost": ("Cost", "コスト"),
    "costs_more": ("More than the chosen", "選択との差"),
    "speed": ("Speed", "速度"),
    "evidence": ("samples", "件"),
    "guess": ("a guess", "推定"),
    "points": ("of 100", "点"),
    "at_first": ("At first {}:", "当初は {}:"),
    "none_known": ("The decision is not known here.", "この判断の記録はありません。"),
    "part_wait_s": ("Wait", "待ち"),
    "part_load_s": ("Load", "ロード"),
    "part_prefill_s": ("Prefill", "入力処理"),
    "part_decode_s": ("Decode", "生成"),
    "part_sharing_s": ("Sharing", "共有"),
    "part_others_s": ("Tasks behind", "後続への影響"),
    "part_quality_s": ("Quality", "品質"),
    # Map
    "map": ("Speed and quality", "速度と品質"),
    "map_decode": (
        "Speed: tokens/s of one stream on the free machine",
        "速度: 空いたマシンでの 1 本あたりのトークン/秒",
    ),
    "map_quality": ("Quality: points of 100, on any machine", "品質: 100 点満点、全マシン"),
    "map_none": ("Nothing was measured yet.", "まだ計測はありません。"),
    "measuring_nobody": (
        "No benchmarker answers: nothing is measured unasked.",
        "計測サービスの応答なし。自動の計測は行われません。",
    ),
    "measuring_off": ("Measuring unasked is switched off.", "自動の計測は無効です。"),
    "measuring_due": (
        "Measured unasked while machines are idle: {} due.",
        "マシンの空き時間に自動で計測します: 残り {} 件",
    ),
    "measuring_done": (
        "Measured unasked while machines are idle: nothing due.",
        "マシンの空き時間に自動で計測します: 残りなし",
    ),
    "map_marks": (
        "~ worked out from related measurements · ? nothing like it was measured · – not held there",
        "~ 関連する計測からの推定 · ? 計測なし · – そのマシンにはない",
    ),
    "map_more": ("more are in the picture", "は画像で表示"),
    "map_picture": ("As a picture (SVG)", "画像 (SVG)"),
    "below": ("below {}", "{} 未満"),
    "from_to": ("{} to {}", "{}〜{}"),
    "and_more": ("{} and more", "{} 以上"),
    **CODES,
}


def words_of(language: Language) -> dict[str, str]:
    at = LANGUAGES.index(language)
    return {key: both[at] for key, both in WORDS.items()}


def coded(reason: str, kind: str, words: Mapping[str, str]) -> tuple[str, str]:
    """``(meaning, details)`` of ``code: details``; a code without a row is its own meaning."""
    code, _, detail = reason.partition(":")
    code = code.strip().partition("(")[0]
    return words.get(f"{kind}_{code}", code), detail.strip()


def measuring_words(measuring: Measuring, words: Mapping[str, str]) -> str:
    if not measuring.on:
        return words["measuring_off"]
    return words["measuring_due"].format(measuring.total) if measuring.total else words["measuring_done"]


def span(seconds: float, words: Mapping[str, str]) -> str:
    """``0.4 s``, ``12 s``, ``3 min``, ``2 h 5 min``; ``page.js`` writes the same."""
    if seconds < 9.95:
        return words["unit_s"].format(f"{max(0.0, seconds):.1f}")
    whole = round(seconds)
    if whole < 120:
        return words["unit_s"].format(whole)
    minutes = whole // 60
    if minutes < 120:
        return words["unit_min"].format(minutes)
    return f"{words['unit_h'].format(minutes // 60)} {words['unit_min'].format(minutes % 60)}"


def to_go(seconds: float, words: Mapping[str, str]) -> str:
    """A prediction: that nothing is left of it says that it is wrong, so the last second is one."""
    return span(seconds, words) if seconds >= 1 else words["soon"]


def late(seconds: float, words: Mapping[str, str]) -> str:
    return words["late"].format(span(seconds, words))


def language_of(query: str | None, cookie: str | None, accepted: str) -> Language:
    """What was asked for, else what was chosen before, else what the browser prefers."""
    for chosen in (query, cookie):
        if chosen in LANGUAGES:
            return chosen
    ranked: list[tuple[float, int, str]] = []
    for at, part in enumerate(accepted.split(",")):
        name, _, weight = part.strip().partition(";q=")
        try:
            ranked.append((-float(weight or 1.0), at, name[:2].lower()))
        except ValueError:
            continue
    return next((name for _, _, name in sorted(ranked) if name in LANGUAGES), "en")
