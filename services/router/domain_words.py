"""The built-in words of each domain, English and Japanese. Data only; ``[domains]`` in the configuration adds to it.

The order decides ties: what is asked to be *done* to a text (translate, summarise) comes before what the text is about.
``needs`` has an entry for each pattern, in its order: what an ASCII text must hold in lower case for that pattern to be found in
it, any of several; nothing where no ASCII text can. Looking for that first is ten times as fast.
"""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split("|") if (word := " ".join(part.split())))


# An instruction as the very first words of a prompt.
_FIRST = r"(?i)\A(?:please |can you |could you )*"

# fmt: off
BUILT_IN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "translation": {
        "words_en": _words("""
            in italian | into italian | into spanish | into chinese | into korean | in chinese | in korean |
            to german | to french | to spanish | to italian | to chinese | to korean | translate | translation |
            translated | in japanese | in english | into english | into japanese | to english | to japanese |
            into french | into german | in french | in german | in spanish | how do you say
        """),
        "words_ja": _words("""
            訳し | 訳すと | 訳は | 直訳 | 意訳 | 通訳 | 翻訳 | 和訳 | 英訳 | 訳して | 訳せ | 訳を | 対訳 |
            英語に | 日本語に | 英語で何 | 英語でなん | 中国語に | フランス語に | ドイツ語に | 韓国語に
        """),
        "patterns": (
            _FIRST + r"translate\b",
            r"(?i)\bthe (?:english|japanese|french|german|spanish|chinese|korean|italian) (?:word )?for\b",
            r"(?i)\bsay\b.{1,80}\bin (?:english|japanese|french|german|spanish|chinese|korean|italian)\b",
            r"(?i)\b(?:translate|render|put)\b.{0,80}\b"
            r"(?:in)?to (?:plain |natural )?(?:english|japanese|french|german|spanish|chinese|korean|italian)\b",
            r"(?:英語|日本語|中国語|フランス語|ドイツ語|韓国語|スペイン語)(?:に|へ)(?:訳|翻訳|直|し)",
        ),
        "needs": ("translate", "the ", "say", "translate|render|put", ""),
    },
    "summarise": {
        "words_en": _words("""
            in a nutshell | overview of | in brief | in short | short version | most important points |
            what does this report | main idea | main argument | in two sentences | in three sentences |
            one paragraph | highlights | summarise | summarize | summary | summarised | tl dr | tldr |
            key points | main points | shorten | condense | in one sentence | bullet points | the gist |
            abstract of | minutes of | boil down | takeaways
        """),
        "words_ja": _words("""
            かいつまんで | ざっくり | 簡潔に | 三行で | 3行で | まとめると | ポイントを | 趣旨 | 主張は | 要約 |
            まとめて | 要点 | 短くして | 一文で | 一言で | 箇条書き | 概要 | 手短に | 議事録 | 要旨
        """),
        "patterns": (
            _FIRST + r"(?:summari[sz]e|condense|shorten)\b",
            r"\d+\s*(?:文字|字)(?:以内|程度)?[でに](?:要約|まとめ)",
        ),
        "needs": ("summarise|summarize|condense|shorten", ""),
    },
    "code": {
        "words_en": _words("""
            react | component | django | flask | fastapi | numpy | pandas | linux | ubuntu | terminal | syntax |
            keyword | decorator | generator | iterator | mutex | thread | threads | concurrency | recursion |
            recursive | database | query | queries | schema | endpoint | webpack | npm | pip | cargo |
            makefile | nginx | postgres | mysql | sqlite | redis | flexbox | selector | dom | callback |
            promise | lambda | pointer | struct | enum | boolean | stdin | stdout | localhost | php | ruby |
            kotlin | swift | scala | haskell | perl | powershell | vim | regexp | github | commit | rebase |
            merge | backend | frontend | deploy | ci | codebase | library | framework | runtime | python |
            javascript | typescript | rust | golang | java | c++ | c# | sql | html | css | bash | regex |
            regular expression | function | code | script | compile | compiler | bug | debug | refactor |
            unit test | stack trace | traceback | exception | api | json | yaml | docker | dockerfile | git |
            class | method | async | loop | variable | program | programming | segfault | pytest | kubernetes |
            algorithm | binary search | linked list | nullpointerexception | typeerror | shell command
        """),
        "words_ja": _words("""
            並行処理 | 非同期 | ライブラリ | フレームワーク | サーバー | ブラウザ | ターミナル | コミット |
            デプロイ | オブジェクト | 文字列 | ループ | ソースコード | 構文 | 型エラー | マージ | テストコード |
            要素を | アプリを作 | 配置したい | コード | 関数 | プログラム | プログラミング | バグ | デバッグ |
            実装 | 正規表現 | スクリプト | コンパイル | 例外 | 変数 | クラス | 単体テスト | リファクタ |
            エラーが出 | アルゴリズム | データベース | クエリ | コマンド | 配列 | 再帰
        """),
        "patterns": (
            r"```",
            r"^\s*(?:def |class |import |from \w+ import|#include|fn |func"
            r" |public |private |const |let |var |SELECT )",
            r"(?i)\bselect\b.{1,200}\bfrom\b.{1,80}\b(?:where|join|group by|limit)\b",
            r"\b\w+\([^)\n]*\)\s*(?:\{|=>|:$|;|`)",
            r"(?:Error|Exception)\b|^Traceback ",
            r"(?i)\b(?:write|implement|fix|refactor|debug)\b.{0,40}\b"
            r"(?:function|script|program|class|query|code|regex)\b",
        ),
        "needs": (
            "```",
            "def |class |import |from |#include|fn |func|public |private |const |let |var |select ",
            "select",
            "(",
            "error|exception|traceback ",
            "write|implement|fix|refactor|debug",
        ),
    },
    "maths": {
        "words_en": _words("""
            maths | math | mathematics | discount | evaluate | simplify | factorise | factorize | maximum |
            minimum | inequality | sequence | average | median | variance | permutation | permutations |
            combinations | cosine | sine | tangent | perimeter | circumference | radius | hypotenuse |
            exponent | binomial | modulo | gcd | lcm | limit | solve | equation | integral | derivative |
            differentiate | integrate | prove | proof | theorem | calculate | compute | probability | matrix |
            eigenvalue | polynomial | triangle | algebra | geometry | calculus | sum of | square root | prime |
            percent | how many | fraction | equals | average speed | arithmetic | logarithm | divisible |
            remainder | factorial | dice
        """),
        "words_ja": _words("""
            何乗 | 乗は | 因数分解 | 最大値 | 最小値 | 不等式 | 数列 | 合計 | 和を | 積を | 順列 |
            組み合わせは | 円周 | 半径 | 直径 | 対数 | 三角関数 | ベクトル | 最小公倍数 | 最大公約数 | 何通り |
            何分 | 計算 | 方程式 | 積分 | 微分 | 証明 | 定理 | 確率 | 行列 | 素数 | 平方根 | 三角形 | 面積 |
            体積 | 分数 | 割り算 | 掛け算 | 足し算 | 引き算 | 関数の最大 | 数学 | いくつ | 何個 | 解を求め |
            求めよ | 求めなさい | 平均 | 時速 | 割合 | 余り | 円周率 | 連立
        """),
        "patterns": (
            r"\d\s*[-+*/×÷^=]\s*\(?[\dxyn]",
            r"[a-z]\^?[²³]?\s*[-+=]\s*\d",
            r"\\(?:frac|int|sum|sqrt|lim)\b|\$[^$\n]+\$",
            r"(?i)\b(?:what is|calculate|compute)\s+[-\d(][\d\s.,+*/×÷^()%-]+",
            r"\d+\s*(?:円|個|人|km|cm|%|パーセント).{0,80}(?:いくら|いくつ|何個|何人|何km|何%|ですか)",
        ),
        "needs": ("-|+|*|/|^|=", "-|+|=", "\\|$", "what is|calculate|compute", ""),
    },
    "writing": {
        "words_en": _words("""
            compose | wording | lullaby | sonnet | love song | invitation | thank you note | apology |
            press release | caption | toast | biography | bio | introduction for | resume | opening line |
            rhymes | fairy tale | scene | poem | haiku | short story | story about | essay | blog post |
            cover letter | slogan | lyrics | write an email | write a letter | draft | rewrite | proofread |
            rephrase | paraphrase | headline | speech | novel | tagline | greeting card | product description |
            dialogue | screenplay | limerick | tone | more polite | more formal
        """),
        "words_ja": _words("""
            例文 | ラブレター | 挨拶文 | メールの返 | 自己紹介 | 志望動機 | 招待状 | 川柳 | 脚本 | 文案 | 文言 |
            原稿 | セリフ | 台詞 | お詫び | 報告書 | 企画書 | 退職の挨拶 | ポエム | 作詞 | 小説 | 詩を | 俳句 |
            短歌 | 物語 | 作文 | エッセイ | ブログ | メールを書 | メールの文 | 手紙 | キャッチコピー | 歌詞 |
            スピーチ | 文章を書 | 下書き | 書き直 | 推敲 | 台本 | 紹介文 | 案内文 | お礼状 | 返信文 | 文面
        """),
        "patterns": (
            r"(?i)\b(?:write|draft|compose)\b.{0,40}\b"
            r"(?:e-?mail|letter|story|poem|song|post|article|speech|essay|message|note)\b",
            r"(?i)\b(?:improve|polish|rewrite|edit)\b.{0,30}\b(?:wording|paragraph|sentence|text|style)\b",
            r"(?:物語|詩|メール|手紙|文章|ストーリー|記事)を(?:一つ|1つ|短く)?(?:書|作|考え)",
        ),
        "needs": ("write|draft|compose", "improve|polish|rewrite|edit", ""),
    },
    "japanese": {
        "words_en": _words("""
            kanji | hiragana | katakana | keigo | jlpt | japanese grammar | japanese particle | furigana
        """),
        "words_ja": _words("""
            使い分け | 意味の違い | 言葉の意味 | 熟語 | 反対語 | 対義語 | 書き順 | 若者言葉 | 標準語 | 大阪弁 |
            関西弁 | 日本語として | 日本語で自然 | 敬語 | 漢字 | 読み方 | ことわざ | 四字熟語 | 助詞 | 文法 |
            類語 | 言い換え | 語源 | 慣用句 | ひらがな | カタカナ | 尊敬語 | 謙譲語 | 丁寧語 | 方言 | 送り仮名
        """),
        "patterns": (
            r"「[^」]{1,20}」(?:の意味|の読み|と「|とは|は(?:どう|何))",
        ),
        "needs": ("",),
    },
    "general": {
        "words_en": _words("""
            good morning | good evening | how do | how long | how much | does | is it | can you | could you |
            please | any plans | tell | compare | pros and cons | what do | what should | list | name | hello |
            hi | hey | thanks | thank you | who | what is | what are | what's | where | when | why | how does |
            how do i | how can i | how to | which | tell me | explain | recommend | advice | describe |
            difference between | suggest | give me | should i | best way | tips | plan a | help me | ideas
        """),
    },
}
# fmt: on
