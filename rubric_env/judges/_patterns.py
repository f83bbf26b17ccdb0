"""The vocabulary of endpoint errors: vendors' codes and the words of their messages, as tables."""

from __future__ import annotations

import re

from rubric_env.scoring.faults import FaultKind

_K = FaultKind

_CODES: dict[FaultKind, str] = {
    _K.QUOTA: """insufficient_quota insufficient_balance insufficient_user_quota exceeded_current_quota_error arrearage
        billing_hard_limit_reached billing_not_active accountoverdueerror payment_required credit_balance_exhausted
        pre_consume_token_quota_failed budget_exceeded setlimitexceeded allocationquota credit_limit""",
    _K.RATE_LIMIT: """rate_limit_exceeded rate_limit_error rate_limit_reached rate_limit_reached_error ratelimitexceeded
        too_many_requests toomanyrequestsexception limit_burst_rate limit_requests throttling throttlingexception
        resource_exhausted engine_overloaded_error quota_exceeded serveroverloaded rate_limited requestlimitexceeded
        limitexceeded service_tier_capacity_exceeded""",
    _K.AUTH: """invalid_api_key invalidapikey incorrect_api_key invalid_authentication_error authentication_error
        authenticationerror unauthenticated unauthorized account_deactivated invalid_token expired_token
        invalid_iam_token authfailure expiredtokenexception unrecognizedclientexception""",
    _K.UNKNOWN_MODEL: """model_not_found modelnotfound model_not_exist model_not_supported model_not_available
        deploymentnotfound unsupported_model invalidendpointormodel.notfound invalid_model modelnotopen
        model.accessdenied accessdenied.unpurchased key_model_access_denied""",
    _K.CONTEXT_LENGTH: """context_length_exceeded context_window_exceeded string_above_max_length request_too_large
        tokens_limit_reached exceed_context_size_error tokens_too_long characters_too_long""",
    _K.CONTENT_FILTER: """content_filter content_policy_violation data_inspection_failed datainspectionfailed
        responsibleaipolicyviolation sensitivecontentdetected inputtextsensitivecontentdetected moderation_blocked
        outputtextsensitivecontentdetected inputtextriskdetection outputtextriskdetection censorship_blocked
        sensitive_words_detected prohibited_content blocklist unsafe_request operationdenied.textillegaldetected""",
    _K.TIMEOUT: "requesttimeout request_timeout",
}
CODES = {code: kind for kind, codes in _CODES.items() for code in codes.split()}
"""Codes that say it all, lower-cased. A dotted code counts by its first part too (`throttling.ratequota`)."""

WEAK_CODES: dict[str, FaultKind] = {
    "permission_error": _K.AUTH,
    "permission_denied": _K.AUTH,
    "accessdenied": _K.AUTH,
    "access_denied": _K.AUTH,
    "overloaded_error": _K.SERVER,
    "server_error": _K.SERVER,
    "internal_error": _K.SERVER,
    "internalerror": _K.SERVER,
    "internal_server_error": _K.SERVER,
    "service_unavailable": _K.SERVER,
}
"""Codes that gateways put on anything: the message is read first."""


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


FIRST: tuple[tuple[FaultKind, re.Pattern[str]], ...] = (
    # One request over a per-minute budget: waiting does not help, less text does.
    (_K.CONTEXT_LENGTH, _any(r"request too large for .{0,250}per min", r"max_tokens must be at least 1, got -")),
    # The output limit that was asked for, not the question.
    (
        _K.BAD_REQUEST,
        _any(
            r"\bmax_(completion_|output_)?tokens\b\W{0,3}(must be less|is too large|\d+ > )|range of max_tokens",
            r"maximum tokens you requested|maximum allowed number of output",
        ),
    ),
    # Gateways keep the code of what they tried last; a cloud calls its limits a minute a quota to be paid for.
    (_K.RATE_LIMIT, _any(r"负载已(饱和|满)", r"exceeded your current quota.{0,200}(aliyun|alibabacloud)\.com")),
)
"""What the message says whatever its code."""

WORDS: tuple[tuple[FaultKind, re.Pattern[str]], ...] = (
    (
        _K.RATE_LIMIT,
        _any(
            r"rate.?limit|too many (concurrent )?requests|request rate|throttl|slow down|resource.?exhausted",
            r"(requests?|tokens?|queries|calls) ?(per|/) ?(second|min|hour|day)|\b[rt]p[md]\b|\bqp[sm]\b",
            r"(try again|retry) (in|after) \d|concurren\w+.{0,20}(limit|exceed|reached)|quota exceeded for",
            r"request limit reached|^token limit\b|capacity exceeded|too many tokens, please wait",
            r"限流|限速|限频|速率限制|流量限制|过于频繁|频率(过|超|限|已)|请求(过|太)(多|快)|请求超过限额",
            r"并发(数|量|请求)?.{0,4}(超|达|过)|(调用次数|访问量).{0,6}(限额|过大)",
        ),
    ),
    (
        _K.QUOTA,
        _any(
            r"insufficient.?(quota|balance|credit|fund)|balance.{0,12}insufficient|credit balance|over budget",
            r"(exceeded|used up) your current quota|budget has been exceeded|quota.{0,20}(exhausted|used up)",
            r"billing|payment required|arrear|overdue|good standing|(monthly|spend\w*) (limit|quota|budget)",
            r"(out of|all available|more) credits?|free (tier|quota|trial).{0,40}(exhausted|used|only)",
            r"余额不足|欠费|余额已用|(额度|配额|资源包).{0,4}(不足|失败|用尽|用完|耗尽)|请?充值",
            r"套餐.{0,4}到期|暂未开放.{0,24}权限",
        ),
    ),
    (_K.RATE_LIMIT, _any(r"quota.{0,20}exceed|exceed\w*.{0,30}quota|usage limit|配额.{0,6}超")),
    (
        _K.CONTEXT_LENGTH,
        _any(
            r"context.?(length|window|size)|maximum (prompt|input) length|range of input length|max_model_len",
            r"(prompt|input|messages?|request|content)( \w+){0,3} (is |are )?too (long|large)|reduce the length",
            r"too many (input )?tokens|(input|prompt|total) tokens?.{0,40}(exceed|limit|more than)",
            r"(exceed|longer than|larger than|too large for).{0,40}(token limit|max\w* .{0,20}(tokens|length)|context)",
            r"(tokens?`?|max_new_tokens`?|inputs`) .{0,20}must (be|have) (<=|less)|exceeds max length",
            r"context the overflows",
            r"上下文|超长|(输入|文本|内容|提示词|长度|token).{0,8}(过长|超过|超出|超限)",
        ),
    ),
    (
        _K.CONTENT_FILTER,
        _any(
            r"content.?(filter|policy|moderation|management|exists risk)|responsible ai|inappropriate content",
            r"safety.?(system|policy|filter|reason|check)|sensitive (content|word|information)|new_sensitive",
            r"flagged|prohibited|data.?inspection|violat\w+.{0,40}(polic|terms|guideline)",
            r"request (was|is|has been) (blocked|rejected)|machine outputted is blocked",
            r"敏感|违规|违法|不合规|(内容|安全)(审核|审查|风险|检测)|风控",
        ),
    ),
    (_K.SERVER, _any(r"temporarily (un|not )available|not available.{0,60}(later|try again)|不可用.{0,12}稍后")),
    (
        _K.UNKNOWN_MODEL,
        _any(
            r"\b(model|deployment)\b.{0,80}(not (found|exist|available|supported|accessible)|doesn't exist|unknown)",
            r"\b(model|deployment)\b.{0,80}(no longer|deprecated|decommissioned|not a valid|not been found)",
            r"\bmodel\b.{0,80}(isn.t supported|end of life)|\bmodel (id|identifier|name)\b.{0,40}invalid",
            r"(no such|unknown|invalid|unsupported|nonexistent) model|not a (valid|chat) model|no endpoints found for",
            r"model (access )?(denied|disabled)|access to model denied|unable to access model|无权访问模型",
            r"(\bno|(\bno|n.)t have|\bnot allowed)( access| permission)? to (access |use )?(the )?(requested )?model",
            r"模型.{0,24}(不存在|未找到|无效|不支持|未开通|未上线|已下线|没有权限)",
        ),
    ),
    (
        _K.AUTH,
        _any(
            r"\b(invalid|incorrect|wrong|expired|missing|revoked|no|malformed)\b.{0,16}(api.?key|token\b|credential)",
            r"(api.?key|access.?token).{0,40}(invalid|incorrect|expired|disabled|missing|revoked|leaked|not valid)",
            r"api.?key.{0,40}required|authenticat|unauthori[sz]ed|not authorized|permission denied|access denied",
            r"no permission|certification failed|account.{0,20}(deactivated|suspended|disabled|banned)",
            r"(location|country|region|territory) is not supported",
            r"无效的?(令牌|密钥|api)|鉴权|(认证|身份验证)失败|(令牌|密钥|token).{0,8}(无效|非法|过期|错误|不可用)",
        ),
    ),
    (
        _K.SERVER,
        _any(
            r"overload|over capacity|(server|system|service) (is )?(too )?(busy|error)|internal (server )?error",
            r"unavailable|bad gateway|upstream|time[d ]?.?out",
            r"繁忙|(服务器?|系统|内部|网络)(错误|异常|不可用|超时)|请求超时|无可用渠道",
        ),
    ),
)
"""Read in this order: a rate limit may mention billing, a quota for a window is a rate limit, and a model that is away
for a while is not unknown."""

GRAMMAR = _any(
    r"(too many|limit|budget|exceed\w*|maximum|more than|at most).{0,60}\b(grammar|schema|enum)",
    r"\b(grammar|schema|enum)s?\b.{0,60}(too (large|many|big|complex)|limit|exceed|budget|per minute)",
)
"""The schema is more than this endpoint compiles: one that is the same for every block may pass."""

FORMAT = _any(
    r"response.?format|json.?schema|json.?object|json.?mode|structured.?output|guided.?(json|decoding)|output_config",
    r"(parse|compile|convert|compiling|unsupported|invalid).{0,30}\b(grammar|schema)|\bschema\b.{0,30}(invalid|unsupported|not)",
    r"(handle|support) the requested parameters|failed to (generate|validate) json|结构化输出",
)
"""The endpoint does not do what `response_format` asks."""

FIREWALL = _any(
    r"you have been blocked|attention required! \| cloudflare|error code: 10(0[5-9]|1[0-2]|20)\b",
    r"request (is |was |has been )?(blocked|rejected)|requested url was rejected|mod_?security|not acceptable",
    r"web ?(application|site)? ?firewall|incapsula incident|sucuri|wordfence",
    r"permission to access .{0,300}reference #|potential threats? to the server",
    r"(访问|请求).{0,12}(阻断|拦截|攻击)|对网站造成.{0,4}威胁",
)
"""A page of something between here and the endpoint that did not like the question."""
